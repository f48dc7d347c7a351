-- Generated diffs: ``` {.diff from="01-iterative" to="02-fork"} becomes what diff -u says about the
-- two server.c, region markers taken out first. The block keeps, for listings.lua, one line each of
-- the form
--   "+12", "-7", " 7 12", "@"
-- in the attribute `rows`; the text of added and kept lines comes from the new file, of removed
-- ones from the old.

local common = require 'common'
local regions = require 'regions'

local diffs = {}

-- A slug stands for its server.c; a name with a slash is a file.
function diffs.path(name)
  return name:find('/', 1, true) and name or 'code/' .. name .. '/server.c'
end

-- diff(1) wants files, and leaves with 1 when they differ, which pandoc.pipe raises as an error.
local function run_diff(old, new, context)
  return pandoc.system.with_temporary_directory('diff', function(folder)
    common.write(folder .. '/old', regions.text(old))
    common.write(folder .. '/new', regions.text(new))
    local arguments = { '-U', context, folder .. '/old', folder .. '/new' }
    local fine, result = pcall(pandoc.pipe, 'diff', arguments, '')
    if not fine and result.error_code ~= 1 then
      common.fail('diff(1) failed: ' .. tostring(result.output or result))
      return ''
    end
    return fine and result or result.output
  end)
end

-- The hunks of diff's output: { rows = {..}, text = "all its lines" } each. Its line numbers count
-- lines without markers; the reader is shown those of the files.
local function hunks_of(output, old, new)
  local hunks, left, right = pandoc.List {}, 0, 0
  for _, line in ipairs(common.lines(output)) do
    local from, to = line:match('^@@ %-(%d+)[,%d]* %+(%d+)[,%d]* @@')
    local hunk, sign = hunks[#hunks], line:sub(1, 1)
    if from then
      left, right = tonumber(from), tonumber(to)
      hunks:insert { rows = pandoc.List {}, text = '' }
    elseif hunk and sign ~= '\\' then -- "\ No newline at end of file"
      local numbers = { sign ~= '+' and old.lines[left].number or nil }
      numbers[#numbers + 1] = sign ~= '-' and new.lines[right].number or nil
      hunk.rows:insert(sign .. table.concat(numbers, ' '))
      hunk.text = hunk.text .. line:sub(2) .. '\n'
      left = left + (sign ~= '+' and 1 or 0)
      right = right + (sign ~= '-' and 1 or 0)
    end
  end
  return hunks
end

-- hunk="1 3" or hunk="a text of one hunk"; nil: all of them.
local function choose(hunks, wanted)
  if not wanted then
    return hunks
  elseif wanted:match('^[%d ]+$') then
    local found = pandoc.List {}
    for number in wanted:gmatch('%d+') do
      found:insert(hunks[tonumber(number)])
      if not hunks[tonumber(number)] then
        common.fail(('hunk %s: there are %d'):format(number, #hunks), 'hunk="' .. wanted)
      end
    end
    return found
  end
  local found = hunks:filter(function(hunk) return hunk.text:find(wanted, 1, true) end)
  if #found ~= 1 then
    local message = 'hunk="%s" occurs in %d of %d hunks, not in one'
    common.fail(message:format(wanted, #found, #hunks), 'hunk="' .. wanted)
  end
  return found
end

local function generate(block)
  local from, to = diffs.path(block.attributes.from), diffs.path(block.attributes.to or '')
  local old, new = regions.file(from), regions.file(to)
  if not (old and new) then
    common.fail('diff: cannot read ' .. (old and to or from), block.attributes[old and 'to' or 'from'])
    return nil
  end
  local rows = pandoc.List {}
  local hunks = hunks_of(run_diff(old, new, block.attributes.context or '3'), old, new)
  for index, hunk in ipairs(choose(hunks, block.attributes.hunk)) do
    rows:extend(index > 1 and { '@' } or {})
    rows:extend(hunk.rows)
  end
  if #hunks == 0 then
    local message = ('diff: %s and %s do not differ'):format(from, to)
    common.fail(message, 'from="' .. block.attributes.from)
  end
  block.attributes.from, block.attributes.to = from, to
  block.attributes.rows = table.concat(rows, '\n')
  return block
end

function diffs.apply(doc)
  return doc:walk {
    CodeBlock = function(block)
      if block.classes:includes('diff') and block.attributes.from then
        return generate(block)
      end
    end,
  }
end

return diffs
