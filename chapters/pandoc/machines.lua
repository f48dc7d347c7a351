-- The headline ratios of all machines as a table, out of build/data/machines.json: what the figure of the strips shows, for
-- who cannot see it, and with intervals.

local common = require 'common'
local numbers = require 'numbers'

local machines = {}

local plain = numbers.plain

local function draw(block)
  local found = common.data 'machines'
  if not found then return common.fail('{.machines', 'no %s/data/machines.json', common.build) end
  local names = pandoc.List(found.names)
  if #names == 0 then return pandoc.Para 'Nothing of it is measured yet: make.' end
  local function row(cells)
    return pandoc.List(cells):map(function(text) return plain(text == '' and '–' or text) end)
  end
  return numbers.labelled(block, { 'machines' }, found.runs, { numbers.table {
    caption = plain(block.attributes.caption or ''),
    aligns = pandoc.List { 'Left' } .. names:map(function() return 'Left' end),
    head = row(pandoc.List { 'ratio' } .. names),
    rows = pandoc.List(found.rows):map(row),
  } })
end

function machines.apply(doc) return doc:walk { CodeBlock = common.by_class { machines = draw } } end

return machines
