-- Code by name: ``` {.c include="code/02-fork/server.c" function="accept_loop"} becomes that function
-- with the comment above it; several names (function="take_input, keep_input") are shown one after
-- the other. A name is that of whatever begins in column 0 of our formatted C: a function, a struct,
-- an enum, a variable, a macro.
--
-- Or by region, for a part of a function: region="loop" becomes the lines between
-- /* region: loop */ and /* endregion: loop */. All without any marker lines, dedented, with their
-- true line numbers. The markers of the labs, /* solution: x */ and /* endsolution: x */, are left
-- out too.
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

-- What the declaration that begins with this text (one line, or several put together) declares.
local function declared(text)
  return text:match('^#define%s+([%w_]+)')
    or text:match('^struct%s+([%w_]+)%s*{')
    or text:match('^enum%s+([%w_]+)%s*{')
    or text:match('^union%s+([%w_]+)%s*{')
    or text:match('^struct {.*}%s*([%w_]+)')
    or text:match('^static struct {.*}%s*([%w_]+)')
    or text:match('^[^=({]-([%w_]+)%(')
    or text:match('^[^=(]-([%w_]+)%s*%[')
    or text:match('^[^=(]-([%w_]+)%s*[=;]')
end

-- Whether the declaration is complete that ends with this line: all braces are closed.
local function completes(line, text)
  if text:find('^#') then
    return not line:find('\\$')
  end
  local _, opened = text:gsub('{', '')
  local _, closed = text:gsub('}', '')
  return opened == closed and (line:find('^}') or line:find(';%s*$') or line:find(';%s*/%*')) ~= nil
end

-- The named declarations of column 0: name -> { first=, last=, twice= }, with the comment above.
local function declarations(lines)
  local found, comment, start, text = {}, nil, nil, nil
  for index, line in ipairs(lines) do
    local code = line.text
    if start then
      text = text .. ' ' .. code
    elseif code:find('^/%*') then
      comment = index
    elseif code:find('^[%a_#]') and not code:find('^#[^d]') then
      start, text = index, code
    elseif not code:find('^ %*') then
      comment = nil
    end
    if start and completes(code, text) then
      local name = declared((text:gsub('/%*.-%*/', '')))
      local is_prototype = not text:find('[{=#]') and text:find('%(')
      local known = name and found[name]
      if name and not (known and is_prototype) then
        local twice = known and not known.is_prototype
        found[name] = { first = comment or start, last = index, twice = twice, is_prototype = is_prototype }
      end
      comment, start = nil, nil
    end
  end
  return found
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
  file.declarations = declarations(file.lines)
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

-- Its text without marker lines.
function regions.text(file)
  return table.concat(pandoc.List(file.lines):map(function(line) return line.text end), '\n') .. '\n'
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

-- Copies the lines of these ranges without blank lines at the ends, a blank one between two ranges,
-- dedented. Also returns the place in the listing of each line of the file.
local function cut(file, ranges)
  local lines, places = {}, {}
  for _, range in ipairs(ranges) do
    local first, last = range.first, range.last
    while first <= last and blank(file.lines[first]) do
      first = first + 1
    end
    while last >= first and blank(file.lines[last]) do
      last = last - 1
    end
    if #lines > 0 and lines[#lines].number + 1 ~= file.lines[first].number then
      lines[#lines + 1] = { number = lines[#lines].number, text = '' }
    end
    for index = first, last do
      lines[#lines + 1] = { number = file.lines[index].number, text = file.lines[index].text }
      places[index] = #lines
    end
  end
  dedent(lines)
  return lines, places
end

-- "accept" or "2-3" -> places in a listing of `count` lines.
local function indices(item, file, places, count)
  local from, to = item:match('^(%d+)%-(%d+)$')
  from = from or item:match('^%d+$')
  from, to = tonumber(from), tonumber(to or from)
  local region = not from and file.regions[item]
  if region then
    from, to = places[region.first], places[region.last]
  end
  if not from or not to or from < 1 or to < from or to > count then
    return nil
  end
  return from .. '-' .. to
end

-- marked="fork 3-4", or steps="accept | fork 7 | close": the same with "first-last" everywhere.
local function resolve(block, name, file, places, count)
  local steps = {}
  for step in ((block.attributes[name] or '') .. '|'):gmatch('([^|]*)|') do
    local found = {}
    for item in step:gmatch('%S+') do
      local range = indices(item, file, places, count)
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

-- The ranges of lines that a block asks for; nil after a message.
local function ranges_of(block, path, file)
  local region, names = block.attributes.region, block.attributes['function']
  if region then
    if not file.regions[region] then
      common.fail(('unknown region "%s" in %s'):format(region, path), 'region="' .. region .. '"')
      return nil
    end
    return { file.regions[region] }
  elseif not names then
    return { { first = 1, last = #file.lines } }
  end
  local ranges = {}
  for name in names:gmatch('[%w_]+') do
    local range = file.declarations[name]
    if not range or range.twice then
      local message = range and '"%s" is there twice in %s' or 'nothing called "%s" begins in %s'
      common.fail(message:format(name, path), 'function="' .. names .. '"')
      return nil
    end
    ranges[#ranges + 1] = range
  end
  return ranges
end

local function include(block)
  local path = block.attributes.include
  local file = regions.file(path)
  if not file then
    common.fail('cannot read ' .. path, path)
    return nil
  end
  local ranges = ranges_of(block, path, file)
  if not ranges then
    return nil
  end
  local lines, places = cut(file, ranges)
  if #lines == 0 then
    local name = block.attributes.region
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
  resolve(block, 'mark', file, places, #lines)
  resolve(block, 'steps', file, places, #lines)
  return block
end

function regions.apply(doc)
  return doc:walk {
    CodeBlock = function(block)
      if block.attributes.include then
        return include(block)
      elseif block.attributes.region or block.attributes['function'] then
        local kind = block.attributes.region and 'region' or 'function'
        common.fail(kind .. '= without include=', kind .. '="' .. block.attributes[kind] .. '"')
      end
      local count = #common.lines(block.text)
      resolve(block, 'mark', { regions = {} }, {}, count)
      resolve(block, 'steps', { regions = {} }, {}, count)
      return block
    end,
  }
end

return regions
