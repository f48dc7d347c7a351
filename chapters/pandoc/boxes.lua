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

-- ::: {.predict draw="event-wait.poll.wait_us" x="sockets" y="one wait"}: book.js lets the reader draw
-- this curve before it is shown. It gets its points: data-draw, as JSON.
local function drawn(div)
  local operand, known, xs, points = div.attributes.draw, common.data 'numbers', {}, {}
  for key, entry in pairs(known) do
    local x = key:sub(1, #operand + 1) == operand .. '@' and tonumber(key:sub(#operand + 2))
    if x and entry.value then
      xs[#xs + 1], points[x] = x, entry
    end
  end
  table.sort(xs)
  div.attributes.draw = nil
  if #xs < 3 then
    common.fail(('"%s" has %d points; a curve has three'):format(operand, #xs),
      'draw="' .. operand .. '"')
    return
  end
  local at, values, last = {}, {}, points[xs[#xs]]
  for index, x in ipairs(xs) do
    at[index], values[index] = ('%.10g'):format(x), ('%.6g'):format(points[x].value)
  end
  local json = '{"x":[%s],"y":[%s],"unit":"%s","xTitle":"%s","yTitle":"%s","source":"%s"}'
  div.attributes['data-draw'] = json:format(table.concat(at, ','), table.concat(values, ','),
    last.unit or '', div.attributes.x or 'x', div.attributes.y or 'y', last.source)
  div.attributes.x, div.attributes.y = nil, nil
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
