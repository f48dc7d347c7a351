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
      for class, title in pairs(titles) do
        if div.classes:includes(class) then
          return titled(div, div.attributes.title or title)
        end
      end
    end,
  }
end

return boxes
