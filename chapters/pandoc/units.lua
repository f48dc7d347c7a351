-- A number and its unit stay on one line: "290 µs" gets a blank that does not break.

local units = {}

local known = {}
for unit in ('ns µs ms s min h B KB KiB kB MB MiB GB GiB TB Hz kHz MHz GHz % W'):gmatch('%S+') do
  known[unit] = true
end

-- The first word of a text, without what closes a sentence or a bracket.
local function unit_of(text)
  return text:match('^[^%s.,;:!?)/]+')
end

function units.apply(doc)
  return doc:walk {
    Inlines = function(inlines)
      for index = 2, #inlines - 1 do
        local before, blank, after = inlines[index - 1], inlines[index], inlines[index + 1]
        local breakable = blank.t == 'Space' or blank.t == 'SoftBreak'
        if breakable and before.t == 'Str' and after.t == 'Str'
          and before.text:match('%d$') and known[unit_of(after.text) or ''] then
          inlines[index] = pandoc.Str('\u{a0}')
        end
      end
      return inlines
    end,
  }
end

return units
