-- ``` {.part-map}: the chapters of the part whose page this is, in their order, each with what its summary says.

local common = require 'common'

local parts = {}

local function map(block)
  local own = common.labels():filter(function(row)
    return row.kind == 'page' and row.part == common.slug and row.slug ~= common.slug
  end)
  if #own == 0 then common.fail('{.part-map', 'no chapter stands in the part %s (chapters/parts.toml)', common.slug) end
  local items = own:map(function(row)
    local title = pandoc.Link(row.text, row.slug .. '.html', '', pandoc.Attr('', { 'ref' }))
    local number = row.number and { pandoc.Span(row.number .. ' ', pandoc.Attr('', { 'number' })) } or {}
    local blocks = pandoc.List { pandoc.Plain(pandoc.List(number) .. { title }) }
    blocks:insert(row.summary and pandoc.Para(pandoc.Str(row.summary)) or nil)
    return blocks
  end)
  return pandoc.Div({ pandoc.BulletList(items) }, pandoc.Attr('', { 'part-map' }))
end

function parts.apply(doc)
  return doc:walk { CodeBlock = common.by_class { ['part-map'] = map } }
end

return parts
