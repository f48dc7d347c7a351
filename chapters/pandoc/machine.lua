-- Small machines, which a reader can touch (not machines.lua, the table of computers):
--
--   ``` {.machine name="poll-walk" #fig:machine-poll-walk caption="One sentence: what is seen."}
--   Two to four sentences that say in words what the machine shows: for paper, and where there is no script.
--   ```
--
-- machines/NAME.js is the machine; machines/stills.txt has what stands in its place without a script, and how many steps it has on a slide.

local common = require 'common'

local machine = {}
local STILLS = 'chapters/pandoc/machines/stills.txt'

local function gather(block)
  local name = block.attributes.name
  if not name then
    common.fail('{.machine', 'a machine without name="..."')
    return {}
  end
  local caption = pandoc.Plain(block.attributes.caption and common.inlines(block.attributes.caption) or {})
  local words = pandoc.Div(pandoc.read(block.text, 'markdown').blocks, pandoc.Attr('', { 'in-words' }))
  return pandoc.Div({ caption, words }, pandoc.Attr(block.identifier, { 'machine' }, { name = name }))
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
  if not still then
    common.fail('name="' .. name .. '"', 'no machine %s in %s', name, STILLS)
    return {}
  end
  local begin = ('<div class="%smachine" data-machine="%s">\n'):format(common.form == 'slides' and 'slide ' or '', name) .. still
  if common.form == 'slides' then
    local steps = pandoc.List {}
    for step = 1, tonumber(still:match 'data%-steps="(%d+)"') - 1 do
      steps:insert(('<span class="fragment moment" data-moment="%d"></span>'):format(step))
    end
    return common.raw(begin .. '</div>' .. table.concat(steps))
  end
  local caption, number = div.content[1].content, common.caption_number(div.identifier)
  if number then caption = { pandoc.Span(number, pandoc.Attr('', { 'number' })), pandoc.Space() } .. caption end
  local id = div.identifier ~= '' and (' id="%s"'):format(common.html_id(div.identifier)) or ''
  return {
    common.raw(('<figure class="figure machine-figure"%s>\n'):format(id) .. begin),
    div.content[2],
    common.raw '</div>\n<figcaption>',
    pandoc.Plain(caption),
    common.raw '</figcaption>\n</figure>',
  }
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
