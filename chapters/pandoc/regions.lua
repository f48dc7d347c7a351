-- Code by region: ``` {.c include="code/02-fork/server.c" region="loop"} becomes the lines between
-- /* region: loop */ and /* endregion: loop */, without any marker lines, dedented, with their true
-- line numbers. The markers of the labs, /* solution: x */ and /* endsolution: x */, are left out too.
--
-- The block keeps them in attributes for listings.lua: `numbers` (the number of each line) and
-- `marked` or `steps` (indices into the listing), with nested regions already resolved.

local common = require 'common'

local regions = {}
local parsed = {}

local kinds = { region = true, endregion = true, solution = true, endsolution = true }

-- "region: x" or "endregion: x" in a comment of its own, or the same for a solution; a third value
-- says that it looks like one and is none.
local function marker(line)
  local kind, rest = line:match('^%s*[/#;%-*]+%s*(%l+):(.*)$')
  if not kinds[kind] then
    return nil
  end
  local name = rest:match('^%s*([a-z0-9-]+)%s*%*?/?%s*$')
  return kind, name, not name
end

-- Adds the lines of one file to `file`: { lines = {{number=, text=}..}, regions = {name = {first=,
-- last=}} }, where first and last count lines without markers.
local function parse(path, text)
  local file = { lines = {}, regions = {} }
  for number, line in ipairs(common.lines(text)) do
    local kind, name, broken = marker(line)
    local region = name and file.regions[name]
    local place = path .. ':' .. number
    if broken then
      kind = kind:gsub('^end', '')
      common.fail_at(place, ('a %s marker with no name of a-z, 0-9 and "-"'):format(kind))
    elseif kind == 'solution' or kind == 'endsolution' then
      -- left out; what it means is the labs' business: labs/grader/starter.py
    elseif kind == 'region' and region then
      common.fail_at(place, ('region "%s" is doubled, first on line %d'):format(name, region.line))
    elseif kind == 'region' then
      file.regions[name] = { first = #file.lines + 1, line = number }
    elseif kind == 'endregion' and not (region and not region.last) then
      common.fail_at(place, ('endregion "%s" without its region'):format(name))
    elseif kind == 'endregion' then
      region.last = #file.lines
    else
      file.lines[#file.lines + 1] = { number = number, text = line }
    end
  end
  for name, region in pairs(file.regions) do
    if not region.last then
      common.fail_at(path .. ':' .. region.line, ('region "%s" is not closed'):format(name))
      region.last = #file.lines
    end
  end
  return file
end

-- The parsed file, or nil when it cannot be read.
function regions.file(path)
  local text = common.depend(path)
  if text and not parsed[path] then
    parsed[path] = parse(path, text)
  end
  return parsed[path]
end

local function blank(line)
  return not line.text:find('%S')
end

local function dedent(lines)
  local indent
  for _, line in ipairs(lines) do
    if not blank(line) then
      local width = #line.text:match('^ *')
      indent = math.min(indent or width, width)
    end
  end
  for _, line in ipairs(lines) do
    line.text = line.text:sub((indent or 0) + 1)
  end
end

-- Copies lines first..last without blank lines at the ends, dedented. Also returns the index of the
-- first one.
local function cut(file, first, last)
  while first <= last and blank(file.lines[first]) do
    first = first + 1
  end
  while last >= first and blank(file.lines[last]) do
    last = last - 1
  end
  local lines = {}
  for index = first, last do
    lines[#lines + 1] = { number = file.lines[index].number, text = file.lines[index].text }
  end
  dedent(lines)
  return lines, first
end

-- "accept" or "2-3" -> indices into the listing that starts at `first` and has `count` lines.
local function indices(item, file, first, count)
  local from, to = item:match('^(%d+)%-(%d+)$')
  from = from or item:match('^%d+$')
  from, to = tonumber(from), tonumber(to or from)
  local region = not from and file.regions[item]
  if region then
    from, to = region.first - first + 1, region.last - first + 1
  end
  if not from or from < 1 or to < from or to > count then
    return nil
  end
  return from .. '-' .. to
end

-- marked="fork 3-4", or steps="accept | fork 7 | close": the same with "first-last" everywhere.
local function resolve(block, name, file, first, count)
  local steps = {}
  for step in ((block.attributes[name] or '') .. '|'):gmatch('([^|]*)|') do
    local found = {}
    for item in step:gmatch('%S+') do
      local range = indices(item, file, first, count)
      if range then
        found[#found + 1] = range
      else
        local message = '%s: "%s" is neither a region inside this listing nor lines of it'
        common.fail(message:format(name, item), item)
      end
    end
    if #found > 0 then
      steps[#steps + 1] = table.concat(found, ' ')
    end
  end
  block.attributes[name] = #steps > 0 and table.concat(steps, '|') or nil
end

local function include(block)
  local path, name = block.attributes.include, block.attributes.region
  local file = regions.file(path)
  if not file then
    common.fail('cannot read ' .. path, path)
    return nil
  end
  local region = file.regions[name]
  if name and not region then
    common.fail(('unknown region "%s" in %s'):format(name, path), 'region="' .. name .. '"')
    return nil
  end
  region = region or { first = 1, last = #file.lines }
  local lines, first = cut(file, region.first, region.last)
  if #lines == 0 then
    local message = ('region "%s" in %s holds no line'):format(name or '(whole file)', path)
    common.fail(message, name and 'region="' .. name .. '"')
    return nil
  end
  local text, numbers = {}, {}
  for index, line in ipairs(lines) do
    text[index], numbers[index] = line.text, line.number
  end
  block.text = table.concat(text, '\n')
  block.attributes.numbers = table.concat(numbers, ' ')
  resolve(block, 'mark', file, first, #lines)
  resolve(block, 'steps', file, first, #lines)
  return block
end

function regions.apply(doc)
  return doc:walk {
    CodeBlock = function(block)
      if block.attributes.include then
        return include(block)
      elseif block.attributes.region then
        common.fail('region= without include=', 'region="' .. block.attributes.region .. '"')
      end
      local count = #common.lines(block.text)
      resolve(block, 'mark', { regions = {} }, 1, count)
      resolve(block, 'steps', { regions = {} }, 1, count)
      return block
    end,
  }
end

return regions
