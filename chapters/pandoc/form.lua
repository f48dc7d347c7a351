-- Pass 3: makes one output of woven files (-M inputs="a.json b.json"): a page, the page of answers,
-- the one-file book, the EPUB, or the deck. pandoc reads an empty document; what it writes is put
-- together here, and page.html or slides/template.html lays it out.

package.path = pandoc.path.directory(PANDOC_SCRIPT_FILE) .. '/?.lua;' .. package.path
local common = require 'common'
local assemble = require 'assemble'
local labels = require 'labels'

local function load_all()
  local chapters = pandoc.List {}
  for path in common.inputs:gmatch('%S+') do
    local slug = path:gsub('^.*/', ''):gsub('%.json$', '')
    local text = common.read(path)
    if text then
      chapters:insert { slug = slug, doc = pandoc.read(text, 'json') }
    else
      common.fail_at(path, 'cannot be read')
    end
  end
  return chapters
end

-- ---- what stands around the text ----------------------------------------------------------------

local function numbered(row)
  return (row.number and row.number .. '  ' or '') .. row.text
end

-- The entries of the table of contents; the sections of the page `slug` among them. In the one-file
-- book, where no page is the current one, a chapter is an element with its own id, and the front
-- page does not bear the name of the book.
local function contents(slug)
  local entries = assemble.pages():map(function(row)
    local text = not slug and row.slug == 'index' and assemble.FRONT or row.text
    return {
      url = slug and row.slug .. '.html' or '#ch-' .. row.slug,
      number = row.number, text = text, current = row.slug == slug,
      summary = row.slug ~= 'index' and row.summary, inner = row.slug ~= 'index',
    }
  end)
  for index, entry in ipairs(entries) do
    if entry.current then
      local sections = pandoc.List(labels.load()):filter(function(row)
        return row.kind == 'section' and row.slug == slug
      end)
      entry.sections = sections:map(function(row) return { url = '#' .. row.id, text = row.text } end)
    end
  end
  return entries
end

-- Title, contents and neighbours of a page.
local function surround(doc, slug)
  local function neighbour(row)
    return row and { url = row.slug .. '.html', title = pandoc.MetaInlines { pandoc.Str(numbered(row)) } }
  end
  local pages, meta = assemble.pages(), doc.meta
  local page, index = pages:find_if(function(row) return row.slug == slug end)
  meta.title, meta.number, meta.pagetitle = page.text, page.number, numbered(page)
  meta.description = page.summary
  meta.front = slug == 'index'
  meta.toc = contents(slug)
  meta.previous, meta.next = neighbour(pages[index - 1]), neighbour(pages[index + 1])
  return doc
end

-- One sentence on the runs behind the numbers; the deck's foot has room for half of it.
local function name_runs(meta, chapters)
  local function runs(name)
    local all = pandoc.List {}
    for _, chapter in ipairs(chapters) do
      for _, run in ipairs(chapter.doc.meta[name] or {}) do
        local text = pandoc.utils.stringify(run)
        all:extend(all:includes(text) and {} or { text })
      end
    end
    return #all > 0 and table.concat(all, '; ')
  end
  local here, reference = runs('runs-here'), runs('runs-reference')
  if common.form == 'deck' then
    local word = common.results == 'reference' and 'Reference: ' or 'ref: '
    local parts = pandoc.List { here and 'This machine: ' .. here or nil }
    parts:extend { reference and word .. reference or nil }
    meta.runs = #parts > 0 and table.concat(parts, '. ') or nil
  elseif common.results == 'reference' then
    meta.runs = 'All numbers are those of the reference run' .. (reference and ': ' .. reference or '') .. '.'
  elseif here then
    local more = reference and (' Those marked “ref”: %s (reference run).'):format(reference) or ''
    meta.runs = ('Numbers of your machine: %s.%s'):format(here, more)
  elseif reference then
    meta.runs = ('Not measured on this machine; numbers marked “ref”: %s (reference run).'):format(reference)
  end
end

-- Style sheets and scripts (-M styles="a.css b.css") become a part of the page.
local function embed(meta)
  for name, element in pairs { styles = 'style', scripts = 'script' } do
    meta[name] = common.split(common[name], '%S+'):map(function(path)
      local text = common.read(path)
      if not text or text:find('</' .. element, 1, true) then
        common.fail_at(path, text and 'holds its own end tag' or 'cannot be read')
      end
      return pandoc.MetaInlines { pandoc.RawInline('html', text or '') }
    end)
  end
end

-- ---- the outputs --------------------------------------------------------------------------------

local forms = {}

function forms.page(book, chapters)
  local doc = assemble.without_answers(chapters[1].doc, 'answers.html')
  for name, value in pairs(book.meta) do
    doc.meta[name] = doc.meta[name] or value
  end
  return surround(doc, chapters[1].slug)
end

function forms.answers(doc, chapters)
  doc.blocks = assemble.answers(chapters)
  return surround(doc, 'answers')
end

function forms.book(doc, chapters)
  doc.meta.single, doc.meta.toc = true, contents()
  return assemble.embed_figures(assemble.book(doc, chapters))
end

-- An EPUB has no running foot: the runs stand at the end.
function forms.epub(doc, chapters)
  doc = assemble.book(doc, chapters)
  if doc.meta.runs then
    doc.blocks:insert(pandoc.Header(1, 'The runs', pandoc.Attr('runs')))
    doc.blocks:insert(pandoc.Para(pandoc.Str(doc.meta.runs)))
  end
  return doc
end

-- ::: speaker, on the first slide: who speaks, where and when (make slides SPEAKER= EVENT= DATE=).
-- ::: last, on the last: the address (URL=), as text and as a code for telephones.
local function fill(doc)
  local about = pandoc.List { 'speaker', 'event', 'date' }:map(function(name)
    return common[name] ~= '' and common[name] or nil
  end)
  local url = common.url or ''
  local fillings = {
    speaker = #about > 0 and { pandoc.Para(pandoc.Str(table.concat(about, ' · '))) } or {},
    last = pandoc.List(url ~= '' and { pandoc.Para(pandoc.Link(url, url)) } or {}),
  }
  local code = common.qrcode and common.read(common.qrcode)
  if url ~= '' and code then
    fillings.last:insert(1, pandoc.RawBlock('html', code:gsub('^.-(<svg)', '%1')))
  end
  return doc:walk {
    Div = function(div)
      local filling = fillings[div.classes[1]]
      if filling then
        div.content = filling
        return div
      end
    end,
  }
end

-- A slide with demo="NAME" gets what slides/demo.js draws into, and the recording it falls back to.
local function with_demos(blocks)
  local found = pandoc.List {}
  for _, block in ipairs(blocks) do
    found:insert(block)
    local demo = block.t == 'Header' and block.attributes.demo
    if demo then
      local recording = common.read(('slides/recordings/%s.jsonl'):format(demo)) or '{}'
      found:insert(pandoc.RawBlock('html', table.concat {
        '<div class="demo"><p class="said"></p><p class="unit"><span class="y"></span><span class="recorded"></span></p>',
        '<div class="plot"></div></div>\n<script type="text/plain" class="recording">',
        recording:gsub('</', '<\\/'), '</script>',
      }))
    end
  end
  return found
end

function forms.deck(doc, chapters)
  for _, chapter in ipairs(chapters) do
    doc.blocks:extend(chapter.doc.blocks)
  end
  doc.blocks = assemble.slides(doc.blocks, common.order and common.read(common.order))
  if #doc.blocks == 0 then
    common.fail_at('slides', 'the track has no slide')
  end
  doc.blocks = with_demos(doc.blocks)
  return assemble.embed_figures(fill(doc))
end

function Pandoc(doc)
  common.start(doc)
  local chapters = load_all()
  common.stop_if_failed()
  name_runs(doc.meta, chapters)
  embed(doc.meta)
  doc = forms[common.form](doc, chapters)
  common.finish()
  return doc
end
