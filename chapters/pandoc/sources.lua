-- ``` {.bibliography}: the sources, out of what quest/book/sources.py has found: author, title, year, address, and the chapters
-- that cite it.

local common = require 'common'

local sources = {}

-- "Chapters 2, 9, and “The scheduler”", each a link.
local function citing(slugs)
  local _, by_label = common.labels()
  local content = pandoc.List {}
  for index, slug in ipairs(slugs) do
    local row = by_label['ch:' .. slug]
    local is_chapter = row.number and row.number:match '^%d'
    local text = is_chapter and row.number or row.text
    content:extend(index > 1 and { pandoc.Str ',', pandoc.Space() } or {})
    content:insert(pandoc.Link(text, slug .. '.html', is_chapter and row.text or '', pandoc.Attr('', { 'ref' })))
  end
  return content
end

local function text(words) return pandoc.List(pandoc.Span(words).content) end

local function item(entry)
  local line = pandoc.List {}
  if entry.authors ~= '' then line:extend(text(entry.authors .. ' ')) end
  if entry.year ~= '' then line:extend(text('(' .. entry.year .. '): ')) end
  line:insert(pandoc.Link(text(entry.title), entry.address))
  if entry.where ~= '' then line:extend(text(', ' .. entry.where)) end
  line:insert(pandoc.Str '.')
  local blocks = pandoc.List { pandoc.Para { pandoc.Span(line, pandoc.Attr('source-' .. entry.id)) } }
  if entry.authors ~= '' then -- a page of the manual has its address in its name
    blocks:insert(pandoc.Para { pandoc.Span({ pandoc.Link(entry.address, entry.address) }, pandoc.Attr('', { 'address' })) })
  end
  if #entry.pages > 0 then
    blocks:insert(pandoc.Para(text('Cited in: ') .. citing(entry.pages)))
  elseif entry.why ~= '' then
    blocks:insert(pandoc.Para(text(entry.why)))
  end
  return blocks
end

-- A line for each page of the manual: they are many.
local function manual_item(entry)
  local line = pandoc.List { pandoc.Link(entry.title, entry.address), pandoc.Str ':', pandoc.Space() }
  return { pandoc.Plain { pandoc.Span(line .. citing(entry.pages), pandoc.Attr('source-' .. entry.id)) } }
end

local function draw()
  local sections = common.data 'sources'
  if not sections then return common.fail('{.bibliography', 'no %s/data/sources.lua', common.weave) end
  local blocks = pandoc.List {}
  for _, section in ipairs(sections) do
    blocks:insert(pandoc.Header(2, section.title, pandoc.Attr('sources-' .. section.id)))
    local items = pandoc.List(section.entries):map(section.id == 'manual' and manual_item or item)
    blocks:insert(pandoc.Div({ pandoc.BulletList(items) }, pandoc.Attr('', { 'sources' })))
  end
  return blocks
end

function sources.apply(doc) return doc:walk { CodeBlock = common.by_class { bibliography = draw } } end

return sources
