-- What nothing has measured, neither the reader's machine nor the reference run, leaves the page: rows and tables of
-- numbers, figures of results, and what stands in ::: {.if-measured experiment="kept-sizes"}. In its place one sentence
-- says what is missing and which experiment measures it. What was left out keeps its anchor, for references to it.
-- With by="reference" it is a text of what the reference run shows: where that has no run, nothing stands there.

local common = require 'common'

local unmeasured = {}

-- The experiment of a bound number that nothing has measured; nil for other numbers, known or misspelt.
local function lacking(span)
  local key, known = pandoc.utils.stringify(span.content), common.data 'numbers'
  local experiment = key:match('^([^.]+)%.')
  return not known[key] and experiment and known[experiment] and experiment or nil
end

-- The experiments that nothing has measured among the numbers of this element, and how many of its numbers are measured.
local function numbers_in(element)
  local missing, measured = pandoc.List {}, 0
  local function look(span)
    local experiment = lacking(span)
    if not experiment then measured = measured + 1
    elseif not missing:includes(experiment) then missing:insert(experiment) end
  end
  element:walk { Span = common.by_class { num = look } }
  return missing, measured
end

local function listed(items)
  local last = items[#items]
  local before = table.concat(items, ', ', 1, #items - 1)
  return before == '' and last or before .. ' and ' .. last
end

-- "Left out: Figure 2.1 and a table. This edition has no run of the experiment: `make bench ONLY=x` makes one."
local function note(items, experiments, labels)
  local content = (labels or pandoc.List {}):map(function(label)
    return pandoc.Span({}, pandoc.Attr(common.html_id(label)))
  end)
  local one = #experiments == 1
  content:extend(pandoc.Inlines(('Left out: %s. This edition has no run of %s: '):format(listed(items),
    one and 'the experiment' or 'the experiments')))
  content:insert(pandoc.Code('make bench ONLY=' .. table.concat(experiments, ',')))
  content:extend(pandoc.Inlines(one and ' makes one.' or ' makes them.'))
  return pandoc.Div({ pandoc.Para(content) }, pandoc.Attr('', { 'left-out' }))
end

local function name_of(label)
  local number = common.caption_number(label)
  return number and number:gsub('%.$', '') or 'a figure'
end

-- ---- tables -------------------------------------------------------------------------------------

-- A dash for each number that is missing beside others.
local function dashed(blocks)
  local function dash(span) return lacking(span) and pandoc.Str '–' or nil end
  return pandoc.Div(blocks):walk { Span = common.by_class { num = dash } }.content
end

local function rows_left(block)
  local missing = numbers_in(block)
  if #missing == 0 then return end
  local simple = pandoc.utils.to_simple_table(block)
  local rows = pandoc.List {}
  for _, row in ipairs(simple.rows) do
    local whole = pandoc.Div {}
    for _, cell in ipairs(row) do whole.content:extend(cell) end
    local absent, measured = numbers_in(whole)
    if #absent == 0 or measured > 0 then rows:insert(pandoc.List(row):map(dashed)) end
  end
  local gone = #simple.rows - #rows
  if #rows == 0 then return { note({ 'a table' }, missing) } end
  simple.rows, simple.headers = rows, pandoc.List(simple.headers):map(dashed)
  local left = pandoc.utils.from_simple_table(simple)
  if gone == 0 then return { left, note({ 'some numbers of this table' }, missing) } end
  return { left, note({ gone == 1 and 'a row of this table' or gone .. ' rows of this table' }, missing) }
end

-- ---- figures, and what an author marks ------------------------------------------------------------

-- The exporter leaves this reason where a figure has no data; other reasons are of this machine, and stay (figures.lua).
local function not_drawn(div)
  local src = div.attributes.src or ''
  local path = common.build .. '/figures/' .. src
  if common.read(path) then return end
  local experiment = (common.depend((path:gsub('%.%a+$', '.skipped'))) or ''):match('^not measured yet: make bench ONLY=(%S+)')
  return experiment and note({ name_of(div.identifier) }, { experiment }, pandoc.List { div.identifier })
end

local function if_measured(div)
  local asked = common.split(div.attributes.experiment, '%S+')
  local needle = 'experiment="' .. (div.attributes.experiment or '')
  if #asked == 0 then common.fail('.if-measured', '.if-measured without experiment=') end
  local measured, absent, of_reference = {}, pandoc.List {}, div.attributes.by == 'reference'
  for key, entry in pairs(common.data 'numbers') do
    local experiment, rest = key:match('^([^.]+)(.*)$')
    local counts = not of_reference or entry.source == 'reference' or entry.reference
    measured[experiment] = measured[experiment] or rest ~= '' and counts and true or false
  end
  for _, name in ipairs(asked) do
    if measured[name] == nil then
      common.fail(needle, 'unknown experiment "%s" (not in %s/data/numbers.json)', name, common.build)
    end
    if not measured[name] then absent:insert(name) end
  end
  local without_tables = div:walk { Table = function() return {} end } -- those leave by themselves
  for _, name in ipairs(numbers_in(without_tables)) do
    if not absent:includes(name) then absent:insert(name) end
  end
  if #absent == 0 then return div.content end
  if of_reference then return {}, false end
  local items, labels, tables = pandoc.List {}, pandoc.List {}, 0
  div:walk {
    Div = common.by_class { figure = function(one)
      items:insert(name_of(one.identifier))
      labels:insert(one.identifier)
    end },
    Table = function() tables = tables + 1 end,
  }
  if tables > 0 then items:insert(tables == 1 and 'a table' or tables .. ' tables') end
  if #items == 0 then items:insert 'a paragraph' end
  return note(items, absent, labels), false
end

function unmeasured.apply(doc)
  if common.form == 'slides' then return doc end
  doc = doc:walk { traverse = 'topdown', Div = common.by_class { ['if-measured'] = if_measured } }
  return doc:walk { Div = common.by_class { figure = not_drawn }, Table = rows_left }
end

return unmeasured
