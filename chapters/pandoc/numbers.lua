-- Bound numbers: [fork-latency.dynamic.fork_us]{.num} becomes "41 µs" out of
-- build/data/numbers.json. The title of the number says key, interval and run; a reference value
-- among the reader's own carries a visible "ref". What nobody has measured yet becomes
-- "(not measured)".

local common = require 'common'
local json = require 'json'

local numbers = {}
local table_of_numbers
local runs = { here = {}, reference = {} }

local function load()
  local path = common.build .. '/data/numbers.json'
  if table_of_numbers == nil then
    local text = common.depend(path)
    local decoded, reason, line = json.decode(text or '')
    if text and not decoded then
      common.fail_at(path .. ':' .. line, reason)
    elseif not text then
      common.fail_at(path, 'not there; results are exported to it before the book is made')
    end
    table_of_numbers = decoded or false
  end
  return table_of_numbers, path
end

-- For the foot of the page, which names the runs that its numbers come from.
function numbers.note_run(entry)
  local set = runs[entry.source]
  if set and type(entry.run) == 'string' and not set[entry.run] then
    set[entry.run] = true
    set[#set + 1] = entry.run
  end
end

-- The text of one entry in the wanted form, or nil.
local function text_of(entry, form)
  local function own(field)
    return entry[field] ~= json.null and entry[field] or nil
  end
  if form == 'both' and own('text') and own('interval') then
    return entry.text .. ' (' .. entry.interval .. ')'
  elseif form == 'value' and own('value') then
    -- The text is rounded for readers, the value is not.
    local unit = own('unit') or ''
    local text = own('text') or tostring(entry.value)
    local head = unit ~= '' and text:sub(-#unit) == unit and text:sub(1, -#unit - 1) or text
    return (head:gsub('%s+$', ''))
  elseif form == 'text' or form == 'interval' then
    return own(form)
  end
end

local function title_of(key, entry)
  local parts = { key }
  if type(entry.interval) == 'string' then
    parts[#parts + 1] = 'interval ' .. entry.interval
  end
  if type(entry.run) == 'string' then
    local whose = entry.source == 'reference' and 'reference run: ' or 'your machine: '
    parts[#parts + 1] = whose .. entry.run
  end
  return table.concat(parts, '; ')
end

-- A unit never stands alone at the start of a line; an interval may.
function numbers.plain(text)
  local content = pandoc.List {}
  for word in (text:gsub('(%d) (%a)', '%1\u{a0}%2'):gsub(' µ', '\u{a0}µ')):gmatch('%S+') do
    content:extend { pandoc.Str(word), pandoc.Space() }
  end
  content:remove()
  return content
end

-- The small label of a value that was not measured here; nothing when the whole book is the
-- reference run's.
function numbers.ref_label(source)
  if source == 'reference' and common.results ~= 'reference' then
    local title = 'value of the reference run, not measured here'
    return pandoc.Span({ pandoc.Str('ref') }, pandoc.Attr('', { 'ref-label' }, { title = title }))
  end
end

local function bind(span)
  if not span.classes:includes('num') then
    return nil
  end
  local key = pandoc.utils.stringify(span.content)
  local known, path = load()
  local entry = known and known[key]
  local experiment = known and not entry and known[key:match('^[^.]+')]
  if experiment then
    local title = key .. '; ' .. experiment.run
    return pandoc.Span('(' .. experiment.text .. ')', pandoc.Attr('', { 'num', experiment.source }, { title = title }))
  elseif not entry then
    if known then
      common.fail(('unknown number "%s" (not in %s)'):format(key, path), '[' .. key .. ']')
    end
    return nil
  end
  local form = span.attributes.form or 'text'
  local text = text_of(entry, form)
  if not text then
    common.fail(('number "%s" has no form "%s"'):format(key, form), '[' .. key .. ']')
    return nil
  end
  numbers.note_run(entry)
  -- A unit never stands alone at the start of a line.
  local content = pandoc.List { pandoc.Str((text:gsub(' ', '\u{a0}'))) }
  content[#content + 1] = numbers.ref_label(entry.source)
  local classes = { 'num', entry.source or 'here' }
  return pandoc.Span(content, pandoc.Attr('', classes, { title = title_of(key, entry) }))
end

function numbers.apply(doc)
  doc = doc:walk { Span = bind }
  for source, list in pairs(runs) do
    doc.meta['runs-' .. source] = pandoc.MetaList(pandoc.List(list):map(pandoc.MetaString))
  end
  return doc
end

local words = {
  here = 'your machine',
  reference = 'reference run',
  both = 'your machine, and reference where marked',
}

-- seen: { here = true, reference = true } or less. Not on slides, not when all is the reference
-- run's.
function numbers.run_label(seen)
  local source = seen.here and seen.reference and 'both'
    or seen.here and 'here'
    or seen.reference and 'reference'
  if source and common.form ~= 'slides' and common.results ~= 'reference' then
    return pandoc.Span(words[source], pandoc.Attr('', { 'run-label', source }))
  end
end

local function label_block(block)
  local seen = {}
  block:walk {
    Span = function(span)
      if span.classes:includes('num') then
        seen[span.classes[2]] = true
      end
    end,
  }
  local label = numbers.run_label(seen)
  if label then
    block.content:insert(1, label)
    return block
  end
end

-- The label in the margin of every paragraph with numbers.
function numbers.margin(doc)
  return doc:walk { Para = label_block }
end

return numbers
