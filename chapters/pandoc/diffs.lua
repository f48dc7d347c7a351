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

local function text_of(file)
  local lines = {}
  for index, line in ipairs(file.lines) do
    lines[index] = line.text
  end
  return table.concat(lines, '\n') .. '\n'
end

-- diff(1) wants files, and leaves with 1 when they differ, which pandoc.pipe raises as an error.
local function run_diff(old, new, context)
  return pandoc.system.with_temporary_directory('diff', function(folder)
    common.write(folder .. '/old', text_of(old))
    common.write(folder .. '/new', text_of(new))
    local arguments = { '-U', context, folder .. '/old', folder .. '/new' }
    local fine, result = pcall(pandoc.pipe, 'diff', arguments, '')
    if not fine and result.error_code ~= 1 then
      common.fail('diff(1) failed: ' .. tostring(result.output or result))
      return ''
    end
    return fine and result or result.output
  end)
end

-- The hunks of diff's output: { rows = {..}, text = "all its lines" } each.
local function hunks_of(output)
  local hunks, old, new = {}, 0, 0
  for _, line in ipairs(common.lines(output)) do
    local from, to = line:match('^@@ %-(%d+)[,%d]* %+(%d+)[,%d]* @@')
    local hunk = hunks[#hunks]
    local sign = line:sub(1, 1)
    if from then
      old, new = tonumber(from), tonumber(to)
      hunks[#hunks + 1] = { rows = {}, text = '' }
    elseif hunk and sign ~= '\\' then -- "\ No newline at end of file"
      local number = { ['+'] = new, ['-'] = old, [' '] = old .. ' ' .. new }
      hunk.rows[#hunk.rows + 1] = sign .. number[sign]
      hunk.text = hunk.text .. line:sub(2) .. '\n'
      old = old + (sign ~= '+' and 1 or 0)
      new = new + (sign ~= '-' and 1 or 0)
    end
  end
  return hunks
end

local function with_text(hunks, wanted)
  local found = {}
  for _, hunk in ipairs(hunks) do
    if hunk.text:find(wanted, 1, true) then
      found[#found + 1] = hunk
    end
  end
  if #found ~= 1 then
    local message = 'hunk="%s" occurs in %d of %d hunks, not in one'
    common.fail(message:format(wanted, #found, #hunks), 'hunk="' .. wanted)
  end
  return found
end

-- hunk="1 3" or hunk="a text of one hunk"; nil: all of them.
local function choose(hunks, wanted)
  if not wanted then
    return hunks
  elseif not wanted:match('^[%d ]+$') then
    return with_text(hunks, wanted)
  end
  local found = {}
  for number in wanted:gmatch('%d+') do
    found[#found + 1] = hunks[tonumber(number)]
    if not hunks[tonumber(number)] then
      common.fail(('hunk %s: there are %d'):format(number, #hunks), 'hunk="' .. wanted)
    end
  end
  return found
end

-- Line numbers of diff count lines without markers; the reader is shown those of the file.
local function true_numbers(row, old, new)
  local sign, first, second = row:match('^([-+ ])(%d+) ?(%d*)$')
  if sign == '+' then
    return '+' .. new.lines[tonumber(first)].number
  elseif sign == '-' then
    return '-' .. old.lines[tonumber(first)].number
  end
  return ' ' .. old.lines[tonumber(first)].number .. ' ' .. new.lines[tonumber(second)].number
end

local function generate(block)
  local from, to = diffs.path(block.attributes.from), diffs.path(block.attributes.to or '')
  local old, new = regions.file(from), regions.file(to)
  for path, file in pairs { [from] = old or false, [to] = new or false } do
    if not file then
      common.fail('diff: cannot read ' .. path, block.attributes[path == from and 'from' or 'to'])
    end
  end
  if not (old and new) then
    return nil
  end
  local rows = {}
  local context = block.attributes.context or '3'
  for index, hunk in ipairs(choose(hunks_of(run_diff(old, new, context)), block.attributes.hunk)) do
    if index > 1 then
      rows[#rows + 1] = '@'
    end
    for _, row in ipairs(hunk.rows) do
      rows[#rows + 1] = true_numbers(row, old, new)
    end
  end
  if #rows == 0 then
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
