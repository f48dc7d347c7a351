-- ``` {.calls}: the index of calls, out of what quest/book/calls.py has found: a group a section, a call a term, so that the
-- search leads to each.

local common = require 'common'

local calls = {}

local MOST_FILES = 8

local function joined(links)
  local content = pandoc.List {}
  for index, link in ipairs(links) do
    content:extend(index > 1 and { pandoc.Str(','), pandoc.Space() } or {})
    content:insert(link)
  end
  return content
end

local function place_link(place)
  local address = place.slug .. '.html' .. (place.id ~= '' and '#' .. place.id or '')
  local link = pandoc.Link(place.text, address, '', pandoc.Attr('', { 'ref' }))
  return place.is_main and pandoc.Strong { link } or link
end

-- "code/09-epoll/loop.c", as a link from a chapter to a file of the tree.
local function file_link(path) return pandoc.Link({ pandoc.Code((path:gsub('^code/', ''))) }, '../' .. path) end

local function files(paths)
  local shown = pandoc.List(paths):map(file_link)
  local more = #shown - MOST_FILES
  if more < 2 then return joined(shown) end
  local first = pandoc.List {}
  for at = 1, MOST_FILES do first:insert(shown[at]) end
  return joined(first) .. { pandoc.Str((' and %d more'):format(more)) }
end

local function line(word, content)
  return pandoc.Para(pandoc.List { pandoc.Str(word), pandoc.Space() } .. content)
end

local function item(call)
  local page = call.page ~= '' and pandoc.List { pandoc.Space(), pandoc.Link(call.page, call.address) } or pandoc.List {}
  local blocks = pandoc.List { pandoc.Para(pandoc.List(pandoc.Span(call.what).content) .. { pandoc.Str '.' } .. page) }
  blocks:insert(#call.places > 0 and line('Book:', joined(pandoc.List(call.places):map(place_link))) or nil)
  blocks:insert(#call.files > 0 and line('Code:', files(call.files)) or nil)
  return { { pandoc.Code(call.name) }, { blocks } }
end

local function draw()
  local groups = common.data 'calls'
  if not groups then return common.fail('{.calls', 'no %s/data/calls.lua', common.weave) end
  local blocks = pandoc.List {}
  for _, group in ipairs(groups) do
    blocks:insert(pandoc.Header(2, group.title, pandoc.Attr('calls-of-' .. group.id)))
    blocks:insert(pandoc.DefinitionList(pandoc.List(group.entries):map(item)))
  end
  return blocks
end

function calls.apply(doc) return doc:walk { CodeBlock = common.by_class { calls = draw } } end

return calls
