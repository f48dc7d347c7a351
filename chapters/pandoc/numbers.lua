-- Bound numbers: [fork-latency.dynamic.fork_us]{.num} becomes "41 µs" out of
-- build/data/numbers.json. The title of the number says key, interval and run; a reference value
-- among the reader's own carries a visible "ref". What nobody has measured yet becomes
-- "(not measured)". And what all that shows results has in common: the label of the run, tables, and
-- that a number and its unit stay on one line.

local common = require 'common'

local numbers = {}
local runs = { here = {}, reference = {} }

-- For the foot of the page, which names the runs that its numbers come from.
function numbers.note_run(entry)
  local set = runs[entry.source]
  if set and entry.run and not set[entry.run] then
    set[entry.run] = true
    set[#set + 1] = entry.run
  end
end

-- The text of one entry in the wanted form, or nil.
local function text_of(entry, form)
  if form == 'both' and entry.text and entry.interval then
    return entry.text .. ' (' .. entry.interval .. ')'
  elseif form == 'value' and entry.value then
    -- The text is rounded for readers, the value is not.
    local unit, text = entry.unit or '', entry.text or tostring(entry.value)
    local head = unit ~= '' and text:sub(-#unit) == unit and text:sub(1, -#unit - 1) or text
    return (head:gsub('%s+$', ''))
  elseif form == 'text' or form == 'interval' then
    return entry[form]
  end
end

local function title_of(key, entry)
  local parts = { key }
  if entry.interval then
    parts[#parts + 1] = 'interval ' .. entry.interval
  end
  if entry.run then
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

-- A table of inlines: caption, head and rows; aligns ('Left'), widths (0 each unless given).
function numbers.table(contents)
  local function row(cells)
    return pandoc.List(cells):map(function(content) return { pandoc.Plain(content) } end)
  end
  local aligns = pandoc.List(contents.aligns):map(function(name) return pandoc['Align' .. name] end)
  local widths = contents.widths or aligns:map(function() return 0 end)
  local rows = pandoc.List(contents.rows):map(row)
  return pandoc.utils.from_simple_table(
    pandoc.SimpleTable(contents.caption or {}, aligns, widths, row(contents.head), rows))
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
  local key, form = pandoc.utils.stringify(span.content), span.attributes.form or 'text'
  local known = common.data 'numbers'
  local entry = known[key]
  local experiment = not entry and known[key:match('^[^.]+')]
  if experiment then
    local title = key .. '; ' .. experiment.run
    local attr = pandoc.Attr('', { 'num', experiment.source }, { title = title })
    return pandoc.Span('(' .. experiment.text .. ')', attr)
  elseif not entry then
    local message = 'unknown number "%s" (not in %s/data/numbers.json)'
    common.fail(message:format(key, common.build), '[' .. key .. ']')
    return nil
  end
  local text = text_of(entry, form)
  if not text then
    common.fail(('number "%s" has no form "%s"'):format(key, form), '[' .. key .. ']')
    return nil
  end
  numbers.note_run(entry)
  local content = pandoc.List { pandoc.Str((text:gsub(' ', '\u{a0}'))) }
  content[#content + 1] = numbers.ref_label(entry.source)
  local classes = { 'num', entry.source or 'here' }
  return pandoc.Span(content, pandoc.Attr('', classes, { title = title_of(key, entry) }))
end

local units = {}
for unit in ('ns µs ms s min h B KB KiB kB MB MiB GB GiB TB Hz kHz MHz GHz % W'):gmatch('%S+') do
  units[unit] = true
end

-- "290 µs" gets a blank that does not break; the unit is without what closes a sentence or a bracket.
local function keep_units(inlines)
  for index = 2, #inlines - 1 do
    local before, blank, after = inlines[index - 1], inlines[index], inlines[index + 1]
    local breakable = blank.t == 'Space' or blank.t == 'SoftBreak'
    if breakable and before.t == 'Str' and after.t == 'Str' and before.text:match('%d$')
      and units[after.text:match('^[^%s.,;:!?)/]+') or ''] then
      inlines[index] = pandoc.Str('\u{a0}')
    end
  end
  return inlines
end

function numbers.apply(doc)
  doc = doc:walk { Span = bind }
  for source, list in pairs(runs) do
    doc.meta['runs-' .. source] = pandoc.MetaList(pandoc.List(list):map(pandoc.MetaString))
  end
  return doc:walk { Inlines = keep_units }
end

local words = {
  here = 'your machine',
  reference = 'reference run',
  both = 'your machine, and reference where marked',
}

-- seen: { here = true, reference = true } or less. Not on slides, not when all is the reference
-- run's.
function numbers.run_label(seen, as_block)
  local source = seen.here and seen.reference and 'both'
    or seen.here and 'here'
    or seen.reference and 'reference'
  if source and common.form ~= 'slides' and common.results ~= 'reference' then
    local label = pandoc.Span(words[source], pandoc.Attr('', { 'run-label', source }))
    return as_block and pandoc.Plain { label } or label
  end
end

-- The label in the margin of every paragraph with numbers.
function numbers.margin(doc)
  return doc:walk {
    Para = function(block)
      local seen = {}
      block:walk {
        Span = function(span)
          if span.classes:includes('num') then
            seen[span.classes[2]] = true
          end
        end,
      }
      local label = numbers.run_label(seen)
      return label and pandoc.Para(pandoc.List { label } .. block.content)
    end,
  }
end

return numbers
