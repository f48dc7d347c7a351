-- Cross-references: @fig:x, @lst:x, @diff:x, @ch:02-fork, @sec:x become links with the name and
-- number of what they point at, and relative links ([text](02-fork.md), [text](#id),
-- [text](../code/x.c)) must lead somewhere.

local common = require 'common'
local labels = require 'labels'

local references = {}

-- In the deck a reference is a pointer to the book, not a link: the deck travels alone.
local function link(row)
  local text = labels.name(row)
  if common.form == 'slides' then
    return pandoc.Str(text)
  end
  local is_page = row.kind == 'page'
  local page = row.slug == common.slug and not is_page and '' or row.slug .. '.html'
  local title = is_page and row.number and row.text or ''
  local address = page .. (is_page and '' or '#' .. row.id)
  return pandoc.Link((text:gsub(' ', '\u{a0}', 1)), address, title, pandoc.Attr('', { 'ref' }))
end

local function resolve(cite)
  local _, by_label = labels.load()
  local result = pandoc.List {}
  for index, citation in ipairs(cite.citations) do
    local row = by_label[citation.id]
    if not row then
      common.fail('unknown reference @' .. citation.id, '@' .. citation.id)
      return nil
    end
    result:extend(index > 1 and { pandoc.Str(','), pandoc.Space() } or {})
    result:insert(link(row))
  end
  return result
end

-- Where one may jump to: "#id" in this file, "02-fork" and "02-fork#id" in all.
local function places(doc)
  local known = {}
  local function note(element)
    if element.identifier ~= '' then
      known['#' .. common.html_id(element.identifier)] = true
    end
  end
  doc:walk { Header = note, Div = note, Span = note, CodeBlock = note, Image = note, Link = note }
  for _, row in ipairs((labels.load())) do
    known[row.slug .. (row.id and '#' .. row.id or '')] = true
  end
  return known
end

-- The same address as seen from build/book/, or nil.
local function from_book(target, known)
  local path = target:match('^%.%./([^#]*)')
  if path then
    return common.exists(path) and '../' .. target
  end
  local slug, id = target:match('^([%w-]*)%.md(#?.*)$')
  return known[slug and slug .. id or target] and (slug and slug .. '.html' .. id or target)
end

local function check_links(doc)
  local known = places(doc)
  return doc:walk {
    Link = function(element)
      if element.target:match('^%a+:') or element.classes:includes('ref') then
        return nil
      end
      local target = from_book(element.target, known)
      if not target then
        common.fail('a link that leads nowhere: ' .. element.target, element.target)
      end
      element.target = target or ''
      return element
    end,
  }
end

function references.apply(doc)
  doc = doc:walk { Cite = resolve }
  if common.form ~= 'slides' then
    doc = check_links(doc)
  end
  return doc:walk {
    Header = function(header)
      header.identifier = common.html_id(header.identifier)
      return header
    end,
  }
end

return references
