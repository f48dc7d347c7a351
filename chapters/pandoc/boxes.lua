-- Blocks with a role: ::: run, expect, predict, box, exercise, answer. Each gets its visible title;
-- exercises and their answers are numbered by chapter (Exercise 2.1, Answer 2.1) and point at each
-- other. form.lua moves the answers away.

local common = require 'common'

local boxes = {}

local titles = {
  run = 'Run',
  expect = 'You should see',
  predict = 'Predict before you read on',
  box = false, -- its own title or none
}

local function titled(div, title)
  if title then
    local text = pandoc.read(title, 'markdown').blocks[1].content
    div.content:insert(1, pandoc.Div({ pandoc.Plain(text) }, pandoc.Attr('', { 'title' })))
  end
  div.attributes.title = nil
  return div
end

-- A curve as JSON; nil if it has fewer than three points.
local function curve(whose, points, fewest)
  local xs, at, values = {}, {}, {}
  for x in pairs(points) do
    xs[#xs + 1] = x
  end
  table.sort(xs)
  for index, x in ipairs(xs) do
    at[index], values[index] = ('%.10g'):format(x), ('%.6g'):format(points[x])
  end
  return #xs >= fewest and ('{"whose":"%s","x":[%s],"y":[%s]}'):format(whose,
    table.concat(at, ','), table.concat(values, ',')) or nil
end

-- What the talk of 2003 drew: then="fork-2003 Linux 2.6" is that curve of figures/history/fork-2003.tsv,
-- in microseconds (900 of its cycles are 1 µs).
local function curve_of_2003(name)
  local file, system = name:match '^(%S+) (.+)$'
  local points, columns = {}, nil
  for line in io.lines('figures/history/' .. file .. '.tsv') do
    local cells = pandoc.List()
    line:gsub('[^\t]+', function(cell) cells:insert(cell) end)
    if not columns and line:sub(1, 1) ~= '#' then
      columns = cells
    elseif columns and cells[1] == system and cells[2] ~= 'touch' then
      local cycles = columns[#cells] == 'cycles'
      points[tonumber(cells[#cells - 1])] = tonumber(cells[#cells]) / (cycles and 900 or 1)
    end
  end
  return curve('2003, ' .. system, points, 2)
end

-- ::: {.predict draw="event-wait.poll.wait_us" x="sockets" y="one wait"}: book.js lets the reader draw
-- this curve before it is shown: the reference run's, then the reader's own, then that of 2003. It
-- gets them as JSON: data-draw.
local function drawn(div)
  local operand, reference, here, unit = div.attributes.draw, {}, {}, ''
  for key, entry in pairs(common.data 'numbers') do
    local x = key:sub(1, #operand + 1) == operand .. '@' and tonumber(key:sub(#operand + 2))
    if x and entry.value then
      (entry.source == 'here' and here or reference)[x] = entry.value
      reference[x] = entry.reference or reference[x]
      unit = entry.unit or ''
    end
  end
  local lines = pandoc.List()
  lines:insert(curve('reference', reference, 3))
  lines:insert(curve('here', here, #lines == 0 and 3 or 2))
  if #lines == 0 then
    common.fail(('"%s" has no three points, as a curve has'):format(operand),
      'draw="' .. operand .. '"')
    return
  end
  if div.attributes['then'] then
    lines:insert(curve_of_2003(div.attributes['then']))
  end
  div.attributes['data-draw'] =
    ('{"lines":[%s],"unit":"%s","xTitle":"%s","yTitle":"%s","measure":"make bench ONLY=%s"}'):format(
      table.concat(lines, ','), unit, div.attributes.x or 'x', div.attributes.y or 'y',
      operand:match '^[^.]+')
  div.attributes.draw, div.attributes.x, div.attributes.y, div.attributes['then'] = nil, nil, nil, nil
end

local function exercise(div, number)
  local name = 'Exercise ' .. number
  local own = div.attributes.title
  div.identifier = common.html_id('exercise-' .. number:gsub('%.', '-'))
  return titled(div, own and name .. ': ' .. own or name)
end

local function answer(div, number)
  div.identifier = common.html_id('answer-' .. number:gsub('%.', '-'))
  return titled(div, 'Answer ' .. number)
end

local function numbering()
  local chapter, count, answered = common.chapter_number(common.slug), 0, 0
  return function(is_answer)
    if not is_answer then
      count = count + 1
    elseif answered == count then
      common.fail('an answer that follows no exercise of its own', '::: answer')
    else
      answered = count
    end
    return (chapter and chapter .. '.' or '') .. count
  end
end

function boxes.apply(doc)
  local next_number = numbering()
  return doc:walk {
    traverse = 'topdown',
    Div = function(div)
      if div.classes:includes('exercise') then
        return exercise(div, next_number(false))
      elseif div.classes:includes('answer') then
        return answer(div, next_number(true))
      end
      if div.classes:includes('predict') and div.attributes.draw then
        drawn(div)
      end
      for class, title in pairs(titles) do
        if div.classes:includes(class) then
          return titled(div, div.attributes.title or title)
        end
      end
    end,
  }
end

return boxes
