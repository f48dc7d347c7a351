-- Cross-references (@fig:x, @sec:x) become links with the name and number of what they point at, and
-- relative links must lead somewhere.

local common = require 'common'

local references = {}

-- In the deck a reference is a pointer to the book, not a link: the deck travels alone.
-- `begins`: the sentence begins with it.
local function link(row, begins)
  local _, by_label = common.labels()
  local text, page_row = common.name(row), by_label['ch:' .. row.slug]
  if row.slug ~= common.slug and (row.kind == 'figure' or row.kind == 'listing') and not page_row.number then
    text = ('%s of “%s”'):format(text, page_row.text) -- its number says nothing of where it is
  end
  text = begins and text:gsub('^%l', string.upper) or text
  if common.form == 'slides' then return pandoc.Str(text) end
  local is_page = row.kind == 'page'
  local page = row.slug == common.slug and not is_page and '' or row.slug .. '.html'
  local title = is_page and row.number and row.text or ''
  local address = page .. (is_page and '' or '#' .. row.id)
  return pandoc.Link((text:gsub(' ', '\u{a0}', 1)), address, title, pandoc.Attr('', { 'ref' }))
end

local function resolve(cite, begins)
  local _, by_label = common.labels()
  local result = pandoc.List {}
  for index, citation in ipairs(cite.citations) do
    local row = by_label[citation.id]
    if not row then return common.fail('@' .. citation.id, 'unknown reference @%s', citation.id) end
    result:extend(index > 1 and { pandoc.Str(','), pandoc.Space() } or {})
    result:insert(link(row, begins and index == 1))
  end
  return result
end

-- A sentence begins with the first word of a paragraph, and behind what ends another.
local function resolve_all(inlines)
  local result = pandoc.List {}
  for index, inline in ipairs(inlines) do
    local before = inlines[index - 2]
    local ended = index == 1 or (before and before.t == 'Str' and before.text:match('[.?!:]$'))
    result:extend(inline.t == 'Cite' and (resolve(inline, ended) or {}) or { inline })
  end
  return result
end

-- Where one may jump to: "#id" in this file, "02-fork" and "02-fork#id" in all.
local function places(doc)
  local known = {}
  local function note(element) known['#' .. common.html_id(element.identifier)] = true end
  doc:walk { Header = note, Div = note, Span = note, CodeBlock = note, Image = note, Link = note }
  for _, row in ipairs((common.labels())) do
    known[row.slug .. (row.id and '#' .. row.id or '')] = true
  end
  return known
end

-- The same address as seen from build/book/, or nil.
local function from_book(target, known)
  local path = target:match('^%.%./([^#]*)')
  if path then
    local file = io.open(path)
    return file and file:close() and '../' .. target
  end
  local slug, id = target:match('^([%w-]*)%.md(#?.*)$')
  return known[slug and slug .. id or target] and (slug and slug .. '.html' .. id or target)
end

local function check_links(doc)
  local known = places(doc)
  return doc:walk {
    Link = function(element)
      if element.target:match('^%a+:') or element.classes:includes('ref') then return nil end
      local target = from_book(element.target, known)
      if not target then
        common.fail(element.target, 'a link that leads nowhere: %s', element.target)
      end
      element.target = target or ''
      return element
    end,
  }
end

function references.apply(doc)
  doc = doc:walk {
    Inlines = resolve_all,
    Header = function(header)
      header.identifier = common.html_id(header.identifier)
      return header
    end,
  }
  return common.form == 'slides' and doc or check_links(doc)
end

return references
