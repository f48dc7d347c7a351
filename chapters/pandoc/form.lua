-- Pass 3: makes one output of woven files (-M inputs="a.json b.json"): a page, the page of answers,
-- the one-file book, the EPUB, or the deck. pandoc reads an empty document; what it writes is put
-- together here.

package.path = pandoc.path.directory(PANDOC_SCRIPT_FILE) .. '/?.lua;' .. package.path
local common = require 'common'
local assemble = require 'assemble'
local navigation = require 'navigation'

local function load_all()
  local chapters = {}
  for path in common.inputs:gmatch('%S+') do
    local slug = path:gsub('^.*/', ''):gsub('%.json$', '')
    local text = common.read(path)
    if text then
      chapters[#chapters + 1] = { slug = slug, doc = pandoc.read(text, 'json') }
    else
      common.fail_at(path, 'cannot be read')
    end
  end
  return chapters
end

local function set_title(meta, slug)
  local page = navigation.page(slug)
  meta.slug = slug
  meta.title = pandoc.MetaInlines { pandoc.Str(page.text) }
  meta.number = page.number
  meta.pagetitle = pandoc.MetaString((page.number and page.number .. '  ' or '') .. page.text)
  meta.description = page.summary
end

local function finish_page(doc, slug)
  set_title(doc.meta, slug)
  doc.meta.sidebar = pandoc.MetaBlocks { navigation.sidebar(slug) }
  navigation.neighbours(doc.meta, slug)
  navigation.runs(doc.meta)
  return doc
end

local forms = {}

function forms.page(book, chapters)
  local chapter = chapters[1]
  local doc = assemble.without_answers(chapter.doc, 'answers.html')
  for name, value in pairs(book.meta) do
    doc.meta[name] = doc.meta[name] or value
  end
  if chapter.slug == 'index' then
    doc.blocks:insert(navigation.contents())
    doc.meta.front = true
  end
  return finish_page(doc, chapter.slug)
end

function forms.answers(doc, chapters)
  doc.blocks = assemble.answers(chapters)
  navigation.join_runs(doc.meta, chapters)
  return finish_page(doc, 'answers')
end

local function all_in_one(doc, chapters)
  navigation.join_runs(doc.meta, chapters)
  navigation.runs(doc.meta)
  doc.blocks = assemble.book(chapters).blocks
  return doc
end

function forms.book(doc, chapters)
  doc = assemble.embed_figures(all_in_one(doc, chapters))
  doc.meta.single = true
  doc.meta.sidebar = pandoc.MetaBlocks { navigation.single() }
  return doc
end

-- An EPUB has no running foot: the runs stand at the end.
function forms.epub(doc, chapters)
  doc = all_in_one(doc, chapters)
  if doc.meta.runs then
    doc.blocks:insert(pandoc.Header(1, 'The runs', pandoc.Attr('runs')))
    doc.blocks:insert(pandoc.Para(doc.meta.runs))
  end
  return doc
end

function forms.deck(doc, chapters)
  navigation.join_runs(doc.meta, chapters)
  navigation.runs(doc.meta)
  for _, chapter in ipairs(chapters) do
    doc.blocks:extend(assemble.track(chapter.doc.blocks, common.track or ''))
  end
  doc = assemble.embed_figures(doc)
  if #doc.blocks == 0 then
    common.fail_at('slides', ('no slide of the track "%s"'):format(common.track or ''))
  end
  return doc
end

function Pandoc(doc)
  common.start(doc)
  local chapters = load_all()
  if #chapters > 0 or common.form == 'answers' then
    doc = forms[common.form](doc, chapters)
  end
  common.finish()
  return doc
end
