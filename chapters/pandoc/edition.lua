-- ``` {.edition}: on which machines the numbers of this edition were measured, out of build/data/edition.json: the reference run,
-- the further sessions of each processor, and the reader's own.

local common = require 'common'
local numbers = require 'numbers'

local edition = {}

-- In bold: what of the reader's own is another than the reference's.
local function row(found, index)
  local cells = pandoc.List(found.rows[index]):map(function(text) return numbers.plain(text == '' and '–' or text) end)
  if found.differs[index] then cells[#cells] = { pandoc.Strong(cells[#cells]) } end
  return cells
end

local function draw(block)
  local found = common.data 'edition'
  if not found then return common.fail('{.edition', 'no %s/data/edition.json', common.build) end
  if #found.names == 0 then return pandoc.Para 'Nothing is measured yet: make.' end
  local rows = pandoc.List {}
  for index in ipairs(found.rows) do rows:insert(row(found, index)) end
  local table = numbers.table {
    caption = numbers.plain(block.attributes.caption or ''),
    aligns = pandoc.List { 'Left' } .. pandoc.List(found.names):map(function() return 'Left' end),
    head = (pandoc.List { '' } .. found.names):map(numbers.plain),
    rows = rows,
  }
  return pandoc.Div({ table }, pandoc.Attr(block.identifier, { 'edition' }))
end

function edition.apply(doc) return doc:walk { CodeBlock = common.by_class { edition = draw } } end

return edition
