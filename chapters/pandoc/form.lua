-- Pass 3: makes one output of woven files (-M inputs="a.json b.json"): a page, the page of answers,
-- the one-file book, the EPUB, or the deck. pandoc reads an empty document; what it writes is put
-- together here, and page.html or slides/template.html lays it out.

package.path = pandoc.path.directory(PANDOC_SCRIPT_FILE) .. '/?.lua;' .. package.path
local common = require 'common'
local assemble = require 'assemble'
local player = require 'player'

local function load_all()
  return common.split(common.inputs, '%S+'):map(function(path)
    local text = common.read(path)
    if not text then common.fail_at(path, 'cannot be read') end
    local slug = path:gsub('^.*/', ''):gsub('%.json$', '')
    return { slug = slug, doc = text and pandoc.read(text, 'json') }
  end)
end

-- ---- what stands around the text ----------------------------------------------------------------

-- An entry of the table of contents; of the page `slug` with its sections. In the one-file book a chapter is an
-- element with its own id, and the front page does not bear the book's name.
local function entry(row, slug)
  local current, is_front = row.slug == slug, row.slug == 'index'
  local sections = current and common.labels():filter(function(one) return one.kind == 'section' and one.slug == slug end)
  return {
    url = slug and row.slug .. '.html' or '#ch-' .. row.slug,
    number = row.number, current = current, inner = not is_front,
    text = not slug and is_front and assemble.FRONT or row.text,
    summary = not is_front and row.summary,
    sections = sections and sections:map(function(one) return { url = '#' .. one.id, text = one.text } end),
  }
end

-- The table of contents: groups of pages, each below the page of its part, if it has one.
local function contents(slug)
  local groups, last = pandoc.List {}, nil
  for _, row in ipairs(assemble.pages()) do
    local is_part = row.part and row.part == row.slug
    if is_part or not last then
      last = { part = is_part and entry(row, slug) or nil, pages = pandoc.List {} }
      groups:insert(last)
    end
    if not is_part then last.pages:insert(entry(row, slug)) end
  end
  return groups
end

-- Title, contents and neighbours of a page.
local function surround(doc, slug)
  local function numbered(row) return (row.number and row.number .. '  ' or '') .. row.text end
  local function neighbour(row)
    return row and { url = row.slug .. '.html', title = pandoc.MetaInlines { pandoc.Str(numbered(row)) } }
  end
  local pages, meta = assemble.pages(), doc.meta
  local page, index = pages:find_if(function(row) return row.slug == slug end)
  local part = page.part and page.part ~= slug and pages:find_if(function(row) return row.slug == page.part end)
  meta.part = part and { url = part.slug .. '.html', text = part.text } or nil
  meta.title, meta.pagetitle = page.text, numbered(page)
  meta.number = page.number and common.name(page) or page.role == 'part' and 'Part' or nil
  meta.description, meta.front, meta.toc = page.summary, slug == 'index', contents(slug)
  meta.previous, meta.next = neighbour(pages[index - 1]), neighbour(pages[index + 1])
  return doc
end

-- The runs behind the numbers.
local function name_runs(meta, chapters)
  local function runs(name)
    local all = pandoc.List {}
    for _, chapter in ipairs(chapters) do
      for _, run in ipairs(chapter.doc.meta[name] or {}) do
        local text = pandoc.utils.stringify(run)
        all:insert(not all:includes(text) and text or nil)
      end
    end
    return #all > 0 and table.concat(all, '; ')
  end
  local here, reference, parts = runs('runs-here'), runs('runs-reference'), pandoc.List {}
  local label = common.results == 'reference' and 'Reference: ' or 'ref: '
  parts:insert(here and 'This machine: ' .. here or nil)
  parts:insert(reference and label .. reference or nil)
  meta.runs = #parts > 0 and table.concat(parts, '. ') or nil
  local _, by_label = common.labels()
  local machine = by_label['sec:this-edition'] -- not in each book
  meta.machine = machine and (common.form == 'book' and '' or machine.slug .. '.html') .. '#' .. machine.id or nil
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

-- Browsers break `-w` and 13-uring behind the hyphen. A short name stays whole (code.css); a long path may go on below.
local function class_of(name) return pandoc.Attr('', name:find '%-' and utf8.len(name) <= 24 and { 'whole' } or {}) end

-- The corner above a column of names heads nothing: to a screen reader it is a cell, and not a heading without words.
local finishing = {
  Table = function(block)
    for _, row in ipairs(block.head.rows) do
      for _, cell in ipairs(row.cells) do
        if pandoc.utils.stringify(cell.contents) == '' then cell.attributes.role = 'cell' end
      end
    end
    return block
  end,
  Code = function(code)
    local parts, at = pandoc.List {}, 1
    for from, name, to in code.text:gmatch '()(%S*%-%S+)()' do
      if from > at then parts:insert(pandoc.Code(code.text:sub(at, from - 1))) end
      parts:insert(pandoc.Code(name, class_of(name)))
      at = to
    end
    if at <= #code.text then parts:insert(pandoc.Code(code.text:sub(at))) end
    return at > 1 and #code.classes == 0 and parts or nil
  end,
  Str = function(str) return str.text:find '%d%d%l?%-%l' and pandoc.Span({ str }, class_of(str.text)) or nil end,
}

-- ---- the outputs --------------------------------------------------------------------------------

local forms = {}

function forms.page(book, chapters)
  local doc = assemble.without_answers(chapters[1].doc, 'answers.html')
  for name, value in pairs(book.meta) do doc.meta[name] = doc.meta[name] or value end
  return surround(doc, chapters[1].slug)
end

function forms.answers(doc, chapters)
  doc.blocks = assemble.answers(chapters)
  return surround(doc, 'answers')
end

function forms.book(doc, chapters)
  doc.meta.single, doc.meta.toc = true, contents()
  return assemble.embed_figures(player.for_one_file(assemble.book(doc, chapters), false))
end

-- An EPUB has no running foot: the runs stand at the end.
function forms.epub(doc, chapters)
  doc = player.for_one_file(assemble.book(doc, chapters), true)
  if doc.meta.runs then
    doc.blocks:insert(pandoc.Header(1, 'The runs', pandoc.Attr('runs')))
    doc.blocks:insert(pandoc.Para(pandoc.Str(doc.meta.runs)))
  end
  return doc
end

-- ::: speaker, on the first slide: who speaks, where and when (make slides SPEAKER= EVENT= DATE=).
-- ::: last, on the last: the address (URL=), as text and as a code for telephones; without one, whom to ask.
local function fill(doc)
  local about = pandoc.List { 'speaker', 'event', 'date' }:map(function(name) return common[name] end)
    :filter(function(text) return text ~= '' end)
  local url, code = common.url or '', common.qrcode and common.read(common.qrcode)
  return doc:walk {
    Div = common.by_class {
      speaker = function(div)
        div.content = #about > 0 and { pandoc.Para(table.concat(about, ' · ')) } or {}
        return div
      end,
      last = function(div)
        local drawn = code and code:gsub('^.-(<svg)', '%1') or ''
        div.content = url ~= '' and { common.raw(drawn), pandoc.Para(pandoc.Link(url, url)) }
          or { common.raw('<p class="no-address">Where to find it: ask me now, or after the talk.</p>') }
        return div
      end,
    },
  }
end

-- The minutes of a slide become the pacing of the speaker view, in seconds. One with demo="NAME" gets
-- what slides/demo.js draws into, and the recording it falls back to.
local function with_pace_and_demos(blocks)
  local found = pandoc.List {}
  for _, block in ipairs(blocks) do
    found:insert(block)
    local attributes = block.t == 'Header' and block.level <= 2 and block.attributes
    if attributes then
      attributes['data-timing'] = ('%.0f'):format((tonumber(attributes.minutes) or 0) * 60)
    end
    if attributes and attributes.demo then
      local recording = common.read(('slides/recordings/%s.jsonl'):format(attributes.demo)) or '{}'
      found:insert(common.raw(table.concat {
        '<div class="demo"><p class="said"></p><p class="unit"><span class="y"></span><span class="recorded"></span></p>',
        '<div class="plot"></div></div>\n<script type="text/plain" class="recording">',
        recording:gsub('</', '<\\/'), '</script>',
      }))
    end
  end
  return found
end

function forms.deck(doc, chapters)
  for _, chapter in ipairs(chapters) do doc.blocks:extend(chapter.doc.blocks) end
  doc.blocks = assemble.slides(doc.blocks, common.order and common.read(common.order))
  if #doc.blocks == 0 then common.fail_at('slides', 'the track has no slide') end
  doc.blocks = with_pace_and_demos(doc.blocks)
  return assemble.embed_figures(fill(doc))
end

function Pandoc(doc)
  common.start(doc)
  local chapters = load_all()
  common.stop_if_failed()
  name_runs(doc.meta, chapters)
  embed(doc.meta)
  doc = forms[common.form](doc, chapters):walk(finishing)
  common.finish()
  return doc
end
