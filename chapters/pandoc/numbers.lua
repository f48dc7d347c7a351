-- Bound numbers: [fork-latency.dynamic.fork_us]{.num} becomes "41 µs" out of
-- build/data/numbers.json. And what all that shows results has in common: the label of the run,
-- tables, and that a number and its unit stay on one line.

local common = require 'common'

local numbers = {}
local runs = { here = {}, reference = {} }

-- For the foot of the page, which names the runs that its numbers come from.
local function note_run(entry)
  local set = runs[entry.source]
  if set and entry.run and not set[entry.run] then
    set[entry.run] = true
    set[#set + 1] = entry.run
  end
end

-- What a ratio says if all of its interval does, and how it is drawn: above 1, below 1; or 1 lies within, or there is none.
local signs = { ahead = '+', behind = '−', even = '=', open = '?' }
local function standing(entry)
  if not (entry.low and entry.high) then return 'open' end
  return entry.low > 1 and 'ahead' or entry.high < 1 and 'behind' or 'even'
end

-- The text of one entry in the wanted form, or nil.
local function text_of(entry, form)
  local text, interval, unit = entry.text, entry.interval, entry.unit or ''
  if form == 'both' then
    return text and interval and (interval == '' and text or text .. ' (' .. interval .. ')')
  elseif form == 'value' then -- the text is rounded for readers, the field of that name is not
    local ends = unit ~= '' and text:sub(-#unit) == unit
    return entry.value and (ends and text:sub(1, -#unit - 1):gsub('%s+$', '') or text)
  elseif form == 'kB' then -- of KiB, beside bytes that are counted by thousands
    return unit == 'KiB' and ('%.0f kB'):format(entry.value * 1.024)
  end
  if form == 'sign' then return entry.value and signs[standing(entry)] .. ' ' .. text end
  return form == 'interval' and interval or form == 'text' and text or nil
end

local function title_of(key, entry)
  local whose = entry.source == 'reference' and 'reference run: ' or 'your machine: '
  local interval = entry.interval and '; interval ' .. entry.interval or ''
  return key .. interval .. (entry.run and '; ' .. whose .. entry.run or '')
end

-- A unit never stands alone at the start of a line, nor do the last three digits of 100 000; an interval may.
function numbers.plain(text)
  local kept = text:gsub('(%d) (%a)', '%1\u{a0}%2'):gsub(' µ', '\u{a0}µ')
  for _ = 1, 2 do kept = kept:gsub('%f[%w](%d%d?%d?) (%d%d%d%f[^%d])', '%1\u{a0}%2') end -- 3 000 000 has two blanks
  return pandoc.Span(kept).content
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
    local title = { title = 'value of the reference run, not measured here' }
    -- The space is for where no style sheet reaches: the speaker view, an e-book, a copied line.
    return pandoc.Span('\u{202f}ref', pandoc.Attr('', { 'ref-label' }, title))
  end
end

local function bind(span)
  local key, form = pandoc.utils.stringify(span.content), span.attributes.form or 'text'
  local known, needle = common.data 'numbers', '[' .. key .. ']'
  local entry = known[key]
  local experiment = not entry and known[key:match('^[^.]+')]
  if experiment then
    local title = { title = key .. '; ' .. experiment.run }
    return pandoc.Span('(' .. experiment.text .. ')', pandoc.Attr('', { 'num', experiment.source }, title))
  elseif not entry then
    return common.fail(needle, 'unknown number "%s" (not in %s/data/numbers.json)', key, common.build)
  end
  local text = text_of(entry, form)
  if not text then return common.fail(needle, 'number "%s" has no form "%s"', key, form) end
  note_run(entry)
  local content = pandoc.List { pandoc.Str((text:gsub(' ', '\u{a0}'))) }
  content[#content + 1] = numbers.ref_label(entry.source)
  local classes = pandoc.List { 'num', entry.source or 'here', entry.noisy and 'noisy' or nil }
  if form == 'sign' then classes:insert(standing(entry)) end
  return pandoc.Span(content, pandoc.Attr('', classes, { title = title_of(key, entry) }))
end

local units = ' ns µs ms s min h B KB KiB kB MB MiB GB GiB TB Hz kHz MHz GHz % W '

-- "290 µs" and "10 000" get a blank that does not break; the unit is without what closes a sentence or a bracket.
local function belong(before, after)
  return before:find('%d$') and units:find(' ' .. (after:match('^[^%s.,;:!?)/]+') or '?') .. ' ', 1, true)
    or before:find('%f[%w]%d%d?%d?$') and after:find('^%d%d%d%f[^%d]')
end

local function keep_numbers(inlines)
  for index = 2, #inlines - 1 do
    local before, blank, after = inlines[index - 1], inlines[index], inlines[index + 1]
    local breakable = blank.t == 'Space' or blank.t == 'SoftBreak'
    if breakable and before.t == 'Str' and after.t == 'Str' and belong(before.text, after.text) then
      inlines[index] = pandoc.Str('\u{a0}')
    end
  end
  return inlines
end

function numbers.apply(doc)
  doc = doc:walk { Span = common.by_class { num = bind } }
  for source, list in pairs(runs) do
    doc.meta['runs-' .. source] = pandoc.MetaList(pandoc.List(list):map(pandoc.MetaString))
  end
  return doc:walk { Inlines = keep_numbers }
end

-- The experiments of which a finding is not what the reader's own data show: what the text says of them is of the
-- reference run, wherever it stands.
local function contradicted()
  local found = {}
  for _, guard in pairs(common.data('guards') or {}) do
    for _, name in ipairs(guard.on_own == 'disagrees' and guard.asks or {}) do found[name] = true end
  end
  return found
end

-- Whether a caption of this experiment's figure may be wrong for the reader's own data.
function numbers.is_contradicted(experiment) return contradicted()[experiment] or false end

local words = {
  otherwise = 'your machine; the text describes the reference run',
  here = 'your machine',
  reference = 'reference run',
  both = 'your machine, and reference where marked',
  noisy = 'your machine, noisy',
  both_noisy = 'your machine, noisy, and reference where marked',
}

-- seen: { here = true, reference = true, noisy = true } or less. Not on slides, not when all is the reference
-- run's.
function numbers.run_label(seen, as_block)
  local source = seen.otherwise and 'otherwise' or seen.here and (seen.reference and 'both' or 'here') or seen.reference and 'reference'
  if source and common.form ~= 'slides' and common.results ~= 'reference' then
    local noisy = seen.noisy and { here = 'noisy', both = 'both_noisy' } or {}
    local label = pandoc.Span(words[noisy[source] or source], pandoc.Attr('', { 'run-label', source }))
    return as_block and pandoc.Plain { label } or label
  end
end

-- These blocks below the label of the runs in `rows`, which go to the foot of the page too.
function numbers.labelled(block, classes, rows, blocks)
  local seen = {}
  for _, row in ipairs(rows) do
    seen[row.source] = true
    note_run(row)
  end
  local content = pandoc.List { numbers.run_label(seen, true) } .. blocks
  return pandoc.Div(content, pandoc.Attr(block.identifier, classes))
end

-- The label in the margin of every paragraph with numbers. The notes below findings say themselves what is otherwise.
function numbers.margin(doc)
  local wrong, noted = contradicted(), { Span = common.by_class { num = function(span)
    span.classes:insert('noted')
    return span
  end } }
  doc = doc:walk { Div = common.by_class { otherwise = function(div) return div:walk(noted) end } }
  return doc:walk {
    Para = function(block)
      local seen = {}
      local function note(span)
        local experiment = (span.attributes.title or ''):match('^([^.;]+)%.')
        seen.otherwise = seen.otherwise or span.classes[2] == 'here' and wrong[experiment] and not span.classes:includes('noted')
        seen[span.classes[2]] = true
        seen.noisy = seen.noisy or span.classes:includes('noisy')
      end
      block:walk { Span = common.by_class { num = note } }
      local label = numbers.run_label(seen)
      return label and pandoc.Para(pandoc.List { label } .. block.content)
    end,
  }
end

return numbers
