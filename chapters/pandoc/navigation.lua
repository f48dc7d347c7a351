-- What stands around the text of a page: the table of contents beside it, the pages before and
-- after it, the contents list of the first page, and the line that says whose numbers are shown.

local common = require 'common'
local labels = require 'labels'

local navigation = {}

navigation.FRONT = 'About this book'
local ANSWERS = { kind = 'page', slug = 'answers', text = 'Answers to the exercises' }

-- All pages in order; the page of answers is the last.
local function pages()
  local list = {}
  for _, row in ipairs((labels.load())) do
    if row.kind == 'page' then
      list[#list + 1] = row
    end
  end
  list[#list + 1] = ANSWERS
  return list
end

function navigation.page(slug)
  for _, row in ipairs(pages()) do
    if row.slug == slug then
      return row
    end
  end
end

local function item(row, href, class, inner)
  local number = row.number and ('<span class="number">%s </span>'):format(row.number) or ''
  local is_current = class == 'current'
  return ('<li%s><a href="%s"%s>%s%s</a>%s</li>\n'):format(
    is_current and ' class="current"' or '', href, is_current and ' aria-current="page"' or '',
    number, common.escape(row.text), inner or '')
end

local function sections(slug, href)
  local list = {}
  for _, row in ipairs((labels.load())) do
    if row.kind == 'section' and row.slug == slug then
      local link = '<li><a href="%s">%s</a></li>\n'
      list[#list + 1] = link:format(href(row), common.escape(row.text))
    end
  end
  return #list > 0 and '<ol class="sections">\n' .. table.concat(list) .. '</ol>\n' or ''
end

-- The table of contents beside a page: all pages, the sections of this one.
function navigation.sidebar(slug)
  local list = {}
  for _, row in ipairs(pages()) do
    local here = row.slug == slug
    local inner = here and sections(slug, function(section) return '#' .. section.id end)
    list[#list + 1] = item(row, row.slug .. '.html', here and 'current' or nil, inner)
  end
  return common.raw('<ol class="toc">\n' .. table.concat(list) .. '</ol>')
end

-- The same inside the one-file book, where a chapter is an element with its own id.
function navigation.single()
  local list = {}
  for _, row in ipairs(pages()) do
    local named = row.slug == 'index' and { slug = row.slug, text = navigation.FRONT } or row
    list[#list + 1] = item(named, '#ch-' .. row.slug)
  end
  return common.raw('<ol class="toc">\n' .. table.concat(list) .. '</ol>')
end

-- The list of chapters with their summaries, on the first page.
function navigation.contents()
  local list = {}
  for _, row in ipairs(pages()) do
    if row.slug ~= 'index' then
      local summary = row.summary and ('<p>%s</p>'):format(common.escape(row.summary)) or ''
      list[#list + 1] = item(row, row.slug .. '.html', nil, summary)
    end
  end
  return common.raw('<ol class="contents">\n' .. table.concat(list) .. '</ol>')
end

local function neighbour(row)
  if row then
    local text = (row.number and row.number .. '  ' or '') .. row.text
    return {
      url = pandoc.MetaString(row.slug .. '.html'),
      title = pandoc.MetaInlines { pandoc.Str(text) },
    }
  end
end

-- Template variables for the pages before and after.
function navigation.neighbours(meta, slug)
  local list = pages()
  for index, row in ipairs(list) do
    if row.slug == slug then
      meta.previous = neighbour(list[index - 1])
      meta.next = neighbour(list[index + 1])
    end
  end
end

local function run_list(runs)
  return table.concat(pandoc.List(runs):map(pandoc.utils.stringify), '; ')
end

-- One sentence on the runs behind the numbers; the deck's foot has room for half of it.
function navigation.runs(meta)
  local here, reference = run_list(meta['runs-here'] or {}), run_list(meta['runs-reference'] or {})
  local text
  if common.form == 'deck' then
    local parts = pandoc.List {}
    parts:extend(here ~= '' and { 'This machine: ' .. here } or {})
    local word = common.results == 'reference' and 'Reference: ' or 'ref: '
    parts:extend(reference ~= '' and { word .. reference } or {})
    text = #parts > 0 and table.concat(parts, '. ') or nil
  elseif common.results == 'reference' then
    reference = reference ~= '' and ': ' .. reference or ''
    text = 'All numbers are those of the reference run' .. reference .. '.'
  elseif here ~= '' and reference ~= '' then
    text = 'Numbers of your machine: %s. Those marked “ref”: %s (reference run).'
    text = text:format(here, reference)
  elseif here ~= '' then
    text = ('Numbers of your machine: %s.'):format(here)
  elseif reference ~= '' then
    text = 'Not measured on this machine; numbers marked “ref”: %s (reference run).'
    text = text:format(reference)
  end
  meta['runs-here'], meta['runs-reference'] = nil, nil
  meta.runs = text and pandoc.MetaInlines { pandoc.Str(text) } or nil
end

-- Joins the runs of several woven chapters.
function navigation.join_runs(meta, chapters)
  for _, name in ipairs { 'runs-here', 'runs-reference' } do
    local seen, all = {}, pandoc.List {}
    for _, chapter in ipairs(chapters) do
      for _, run in ipairs(chapter.doc.meta[name] or {}) do
        local text = pandoc.utils.stringify(run)
        if not seen[text] then
          seen[text] = true
          all:insert(pandoc.MetaString(text))
        end
      end
    end
    meta[name] = pandoc.MetaList(all)
  end
end

return navigation
