-- Blocks with a role: each gets its visible title; exercises and their answers are numbered by chapter
-- and point at each other. form.lua moves the answers away.

local common = require 'common'

local boxes = {}

local function titled(div, title)
  if title then
    div.content:insert(1, pandoc.Div({ pandoc.Plain(common.inlines(title)) }, pandoc.Attr('', { 'title' })))
  end
  div.attributes.title = nil
  return div
end

-- A curve as JSON; nil if it has fewer than so many points.
local function curve(whose, points, fewest)
  local xs = pandoc.List {}
  for x in pairs(points) do xs:insert(x) end
  xs:sort()
  local at = xs:map(function(x) return ('%.10g'):format(x) end)
  local values = xs:map(function(x) return ('%.6g'):format(points[x]) end)
  return #xs >= fewest and ('{"whose":"%s","x":[%s],"y":[%s]}'):format(whose,
    table.concat(at, ','), table.concat(values, ',')) or nil
end

-- What the talk of 2003 drew: then="fork-2003 Linux 2.6" is that curve of figures/history/fork-2003.tsv.
local function curve_of_2003(name)
  local file, system = name:match '^(%S+) (.+)$'
  local points = {}
  for line in io.lines('figures/history/' .. file .. '.tsv') do
    local cells = common.split(line, '[^\t]+')
    if cells[1] == system then points[tonumber(cells[2])] = tonumber(cells[3]) end
  end
  return curve('2003, ' .. system, points, 2)
end

-- ::: {.predict draw="event-wait.poll.wait_us" x="sockets" y="one wait"}: book.js lets the reader draw
-- this curve before it is shown: the reference run's, then the reader's own, then that of 2003. It
-- gets them as JSON: data-draw.
local function drawn(div)
  local wanted, reference, here, unit = div.attributes, {}, {}, ''
  local operand = wanted.draw
  for key, entry in pairs(common.data 'numbers') do
    local x = key:sub(1, #operand + 1) == operand .. '@' and tonumber(key:sub(#operand + 2))
    if x and entry.value then
      (entry.source == 'here' and here or reference)[x] = entry.value
      reference[x] = entry.reference or reference[x]
      unit = entry.unit or ''
    end
  end
  local lines = pandoc.List { curve('reference', reference, 3) }
  lines:insert(curve('here', here, #lines == 0 and 3 or 2))
  if #lines == 0 then
    common.fail('draw="' .. operand, '"%s" has no three points, as a curve has', operand)
    return div
  end
  lines:insert(wanted['then'] and curve_of_2003(wanted['then']))
  wanted['data-draw'] = ('{"lines":[%s],"unit":"%s","xTitle":"%s","yTitle":"%s","measure":"make bench ONLY=%s"}')
    :format(table.concat(lines, ','), unit, wanted.x or 'x', wanted.y or 'y', operand:match '^[^.]+')
  wanted.draw, wanted.x, wanted.y, wanted['then'] = nil, nil, nil, nil
  return div
end

-- "**Answer.** It is flat.": a box of its own, so that what answers a prediction does not look like what asks.
local function outcome(paragraph)
  local first = paragraph.content[1]
  if first and first.t == 'Strong' and pandoc.utils.stringify(first) == 'Answer.' then
    local rest = pandoc.Para { table.unpack(paragraph.content, 3) }
    return titled(pandoc.Div({ rest }, pandoc.Attr('', { 'outcome' })), 'Answer'), false
  end
end

function boxes.apply(doc)
  local _, by_label = common.labels()
  local page = by_label['ch:' .. common.slug] or {}
  local count, answered = 0, 0
  local function numbered(div, word)
    local number = (page.number and page.number .. '.' or '') .. count
    div.identifier = ('%s-%s-%d'):format(word:lower(), page.number or common.slug, count)
    local own = div.attributes.title
    return titled(div, word .. ' ' .. number .. (own and ': ' .. own or ''))
  end
  local function boxed(title)
    return function(div) return titled(div, div.attributes.title or title) end
  end
  return doc:walk {
    traverse = 'topdown',
    Para = common.form ~= 'slides' and outcome or nil,
    Div = common.by_class {
      run = boxed 'Run',
      expect = boxed 'You should see',
      box = boxed(), -- its own title or none
      predict = function(div) return boxed 'Predict before you read on'(div.attributes.draw and drawn(div) or div) end,
      exercise = function(div)
        count = count + 1
        return numbered(div, 'Exercise')
      end,
      answer = function(div)
        if answered == count then
          common.fail('::: answer', 'an answer that follows no exercise of its own')
        end
        answered = count
        return numbered(div, 'Answer')
      end,
    },
  }
end

return boxes
