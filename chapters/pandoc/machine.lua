-- Small machines, which a reader can touch (not machines.lua, the table of computers):
--
--   ``` {.machine name="poll-walk" #fig:machine-poll-walk caption="One sentence: what is seen."}
--   Two to four sentences that say in words what the machine shows: for paper, and where there is no script.
--   ```
--
-- measured="EXPERIMENT.VARIANT" measured-says="A sentence." puts what was measured beside the model, as the machine draws it: the points
-- of an experiment whose metrics `load` (per cent) and `stay` (times of the service) have one x.
--
-- machines/NAME.js is the machine; machines/stills.txt has what stands in its place without a script, and how many steps it has on a slide.

local common = require 'common'
local numbers = require 'numbers'

local machine = {}
local STILLS = 'chapters/pandoc/machines/stills.txt'

-- Its points, by their load, as JSON, and what stands below: the sentence and the run. Where nothing is measured that is said, but not in
-- the reference's edition, whose readers cannot measure.
local function measured(attributes)
  local operand, known = attributes.measured, common.data 'numbers'
  local experiment = known[operand:match '^[^.]+']
  local points, rows = pandoc.List {}, pandoc.List {}
  for key, stay in pairs(known) do
    local x = key:sub(1, #operand + 6) == operand .. '.stay@' and key:sub(#operand + 7)
    local load = x and known[operand .. '.load@' .. x]
    if load and tonumber(x) and load.value and stay.value then
      points:insert { load.value, stay.value }
      rows:insert(stay)
    end
  end
  if #points == 0 and not experiment then
    common.fail('measured="' .. operand, 'no point of "%s" (not in %s/data/numbers.json)', operand, common.build)
  end
  points:sort(function(a, b) return a[1] < b[1] end)
  local says = #points > 0 and attributes['measured-says']
    or common.results ~= 'reference' and ('Not measured yet: %s.'):format(experiment and experiment.run or '')
  local json = points:map(function(point) return ('[%g,%g]'):format(point[1], point[2]) end)
  return #points > 0 and '[' .. table.concat(json, ',') .. ']' or nil,
    says and numbers.labelled({ identifier = '' }, { 'measured' }, rows, { pandoc.Plain(common.inlines(says)) }) or nil
end

local function gather(block)
  local name = block.attributes.name
  if not name then return common.fail('{.machine', 'a machine without name="..."') or {} end
  local caption = pandoc.Plain(block.attributes.caption and common.inlines(block.attributes.caption) or {})
  local words = pandoc.Div(pandoc.read(block.text, 'markdown').blocks, pandoc.Attr('', { 'in-words' }))
  local content, attributes = pandoc.List { caption, words }, { name = name }
  if block.attributes.measured then
    attributes.points, content[3] = measured(block.attributes)
  end
  return pandoc.Div(content, pandoc.Attr(block.identifier, { 'machine' }, attributes))
end

-- Before code.bind: what is a machine is no listing.
function machine.gather(doc) return doc:walk { CodeBlock = common.by_class { machine = gather } } end

local function still_of(name)
  local all = '\n' .. (common.depend(STILLS) or '') .. '\n==> '
  return all:match('\n==> ' .. name:gsub('%p', '%%%0') .. ' <==\n(.-)\n==> ')
end

local function draw(div)
  local name = div.attributes.name
  local still = still_of(name)
  if not still then return common.fail('name="' .. name .. '"', 'no machine %s in %s', name, STILLS) or {} end
  local points = div.attributes.points and (' data-measured="%s"'):format(div.attributes.points) or ''
  local begin = ('<div class="%smachine" data-machine="%s"%s>\n'):format(common.form == 'slides' and 'slide ' or '', name, points) .. still
  if common.form == 'slides' then
    return common.raw(begin .. '</div>' .. common.moments(tonumber(still:match 'data%-steps="(%d+)"')))
  end
  local caption, number = div.content[1].content, common.caption_number(div.identifier)
  if number then caption = { pandoc.Span(number, pandoc.Attr('', { 'number' })), pandoc.Space() } .. caption end
  local id = div.identifier ~= '' and (' id="%s"'):format(common.html_id(div.identifier)) or ''
  local drawn = pandoc.List {
    common.raw(('<figure class="figure machine-figure"%s>\n'):format(id) .. begin),
    div.content[2],
    common.raw '</div>\n<figcaption>',
    pandoc.Plain(caption),
    div.content[3], -- what is measured, if anything
  }
  drawn:insert(common.raw '</figcaption>\n</figure>')
  return drawn
end

-- Its page is made with style sheet and scripts: the template asks.
function machine.draw(doc)
  local found = false
  doc = doc:walk { Div = common.by_class { machine = function(div)
    found = true
    return draw(div)
  end } }
  doc.meta['has-machine'] = found or nil
  return doc
end

return machine
