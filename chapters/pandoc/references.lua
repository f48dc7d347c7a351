-- Cross-references: @fig:x, @lst:x, @diff:x, @ch:02-fork, @sec:x become links with the name and
-- number of what they point at, and relative links ([text](02-fork.md), [text](#id),
-- [text](../code/x.c)) must lead somewhere.

local common = require 'common'
local labels = require 'labels'

local references = {}

local function address(row)
  local page = row.slug == common.slug and '' or row.slug .. '.html'
  return row.kind == 'page' and row.slug .. '.html' or page .. '#' .. row.id
end

-- In the deck a reference is a pointer to the book, not a link: the deck travels alone.
local function link(row)
  local text = labels.name(row)
  if common.form == 'slides' then
    return pandoc.Str(text)
  end
  local title = row.kind == 'page' and row.number and row.text or ''
  return pandoc.Link((text:gsub(' ', '\u{a0}', 1)), address(row), title, pandoc.Attr('', { 'ref' }))
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
    if index > 1 then
      result:extend { pandoc.Str(','), pandoc.Space() }
    end
    result:insert(link(row))
  end
  return result
end

local function known_ids(doc)
  local ids = {}
  local function note(element)
    if element.identifier and element.identifier ~= '' then
      ids[common.html_id(element.identifier)] = true
    end
  end
  doc:walk { Header = note, Div = note, Span = note, CodeBlock = note, Image = note, Link = note }
  return ids
end

local function known_pages()
  local pages = {}
  for _, row in ipairs((labels.load())) do
    pages[row.slug] = pages[row.slug] or {}
    pages[row.slug][row.id or ''] = true
  end
  return pages
end

-- ../code/x.c as seen from chapters/ is ../../code/x.c as seen from build/book/.
local function to_file(target)
  local path = target:match('^%.%./(.*)$')
  if path and common.exists((path:gsub('#.*$', ''))) then
    return '../../' .. path
  end
end

local function check_links(doc)
  local ids, pages = known_ids(doc), known_pages()
  local function check(target)
    local slug, id = target:match('^([%w-]*)%.md#?(.*)$')
    if target:match('^#') then
      return ids[target:sub(2)] and target
    elseif slug then
      local known = pages[slug] and (id == '' or pages[slug][id])
      return known and slug .. '.html' .. (id ~= '' and '#' .. id or '')
    end
    return to_file(target)
  end
  return doc:walk {
    Link = function(element)
      if element.target:match('^%a+:') or element.classes:includes('ref') then
        return nil
      end
      local target = check(element.target)
      if not target then
        common.fail('a link that leads nowhere: ' .. element.target, element.target)
        return nil
      end
      element.target = target
      return element
    end,
  }
end

local function plain_ids(doc)
  return doc:walk {
    Header = function(header)
      header.identifier = common.html_id(header.identifier)
      return header
    end,
  }
end

function references.apply(doc)
  doc = doc:walk { Cite = resolve }
  if common.form ~= 'slides' then
    doc = check_links(doc)
  end
  return plain_ids(doc)
end

return references
