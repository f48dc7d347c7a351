-- A reader for JSON: pandoc has pandoc.json only from 3.1 on. Null becomes json.null, so that a key
-- with null exists.

local json = { null = setmetatable({}, { __tostring = function() return 'null' end }) }

local escapes = { b = '\b', f = '\f', n = '\n', r = '\r', t = '\t' } -- others stand for themselves
local value -- read_array and read_object call it

local function stop(text, at, expected)
  local _, newlines = text:sub(1, at):gsub('\n', '')
  error({ line = newlines + 1, message = 'not JSON: expected ' .. expected }, 0)
end

local function skip(text, at)
  return text:find('[^ \t\r\n]', at) or #text + 1
end

local function unescape(body)
  -- Pairs of surrogates first: "\ud83d\ude00" is one character.
  body = body:gsub('\\u([dD][89abAB]%x%x)\\u([dD][c-fC-F]%x%x)', function(high, low)
    return utf8.char(0x10000 + (tonumber(high, 16) - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00)
  end)
  body = body:gsub('\\u(%x%x%x%x)', function(hex)
    local code = tonumber(hex, 16)
    return code == 0x5C and '\\\\' or utf8.char(code)
  end)
  return (body:gsub('\\(.)', function(character)
    return escapes[character] or character
  end))
end

local function read_string(text, at)
  local from = at + 1
  while true do
    local stop_at = text:find('["\\]', from)
    if not stop_at then
      stop(text, at, 'the end of this string')
    end
    if text:byte(stop_at) == 34 then
      local body = text:sub(at + 1, stop_at - 1)
      return body:find('\\', 1, true) and unescape(body) or body, stop_at + 1
    end
    from = stop_at + 2
  end
end

-- What arrays and objects share: items between commas up to the closing bracket.
local function read_items(text, at, close, item)
  at = skip(text, at + 1)
  if text:sub(at, at) == close then
    return at + 1
  end
  while true do
    at = skip(text, item(skip(text, at)))
    local mark = text:sub(at, at)
    if mark == close then
      return at + 1
    elseif mark ~= ',' then
      stop(text, at, '"," or "' .. close .. '"')
    end
    at = at + 1
  end
end

local function read_array(text, at)
  local array = {}
  return array, read_items(text, at, ']', function(item_at)
    local item, after = value(text, item_at)
    array[#array + 1] = item
    return after
  end)
end

local function read_object(text, at)
  local object = {}
  return object, read_items(text, at, '}', function(key_at)
    if text:sub(key_at, key_at) ~= '"' then
      stop(text, key_at, 'a key in quotes')
    end
    local key, after = read_string(text, key_at)
    after = skip(text, after)
    if text:sub(after, after) ~= ':' then
      stop(text, after, '":"')
    end
    object[key], after = value(text, skip(text, after + 1))
    return after
  end)
end

function value(text, at)
  local first = text:sub(at, at)
  if first == '"' then
    return read_string(text, at)
  elseif first == '{' then
    return read_object(text, at)
  elseif first == '[' then
    return read_array(text, at)
  end
  local word = text:match('^%a+', at)
  if word == 'true' or word == 'false' then
    return word == 'true', at + #word
  elseif word == 'null' then
    return json.null, at + 4
  end
  local number = text:match('^-?%d+%.?%d*[eE]?[-+]?%d*', at)
  if not tonumber(number) then
    stop(text, at, 'a value')
  end
  return tonumber(number), at + #number
end

-- The value, or nil, reason and line.
function json.decode(text)
  local fine, result = pcall(function()
    local result, after = value(text, skip(text, 1))
    if skip(text, after) <= #text then
      stop(text, after, 'nothing more')
    end
    return result
  end)
  if fine then
    return result
  elseif type(result) == 'table' then
    return nil, result.message, result.line
  end
  return nil, tostring(result), 1
end

return json
