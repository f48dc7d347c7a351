-- Draws every code block: pandoc's highlighter colours it, this file wraps each line in a span of
-- its own, so that line numbers (data-n, drawn by the style sheet: no links, never copied), marks,
-- steps and diff signs find their place.

local common = require 'common'
local labels = require 'labels'
local regions = require 'regions'

local listings = {}

local MAX_SLIDE_LINES, MAX_SLIDE_COLUMNS = 12, 64

-- Highlighted HTML of each line. Tokens of skylighting never span lines, so the lines can be taken
-- apart.
local function highlight(text, language)
  local block = pandoc.CodeBlock(text, pandoc.Attr('', language and { language } or {}))
  local html = pandoc.write(pandoc.Pandoc { block }, 'html')
  local body = html:match('<code[^>]*>(.*)</code></pre>')
  local lines = {}
  for index, line in ipairs(common.lines(body)) do
    local inner = line:gsub('^<span id="cb%d+%-%d+"><a [^>]*></a>', '')
    lines[index] = inner ~= line and inner:gsub('</span>$', '') or line
  end
  return lines
end

local function line_html(class, number, content, sign)
  local numbered = number and (' data-n="%s"'):format(number) or ''
  local mark = sign and ('<span class="sign">%s</span>'):format(sign) or ''
  return ('<span class="%s"%s>%s%s</span>'):format(class, numbered, mark, content)
end

-- "2-4 7-7|9-9" -> { [2] = {1}, ... }: for each line the steps it belongs to.
local function steps_of(text)
  local steps, step = {}, 0
  for part in ((text or '') .. '|'):gmatch('([^|]*)|') do
    step = step + 1
    for from, to in part:gmatch('(%d+)%-(%d+)') do
      for line = tonumber(from), tonumber(to) do
        steps[line] = steps[line] or {}
        table.insert(steps[line], step)
      end
    end
  end
  return steps, text and step or 0
end

local function code_lines(block)
  local numbers, lines = {}, {}
  for number in (block.attributes.numbers or ''):gmatch('%d+') do
    numbers[#numbers + 1] = number
  end
  local marked, steps = steps_of(block.attributes.mark), steps_of(block.attributes.steps)
  for index, content in ipairs(highlight(block.text, block.classes[1])) do
    local class = 'line' .. (marked[index] and ' marked' or '')
    for _, step in ipairs(steps[index] or {}) do
      class = class .. ' step-' .. step
    end
    lines[index] = line_html(class, numbers[index], content)
  end
  return lines
end

-- "$ " is the shell's prompt, "> " after it the one for a command that goes on.
local function console_lines(block)
  local lines, typing = {}, false
  for index, line in ipairs(common.lines(block.text)) do
    local prompt, typed = line:match('^([$>] )(.*)$')
    typing = prompt == '$ ' or typing and prompt == '> '
    lines[index] = typing
      and line_html('line typed', nil, common.escape(typed), common.escape(prompt))
      or line_html('line', nil, common.escape(line))
  end
  return lines
end

local extensions = { c = 'c', h = 'c', py = 'python', toml = 'toml', mk = 'makefile', sh = 'bash' }

-- Highlighted lines of a whole file by their true numbers.
local function file_lines(path)
  local file, by_number = regions.file(path), {}
  local language = extensions[path:match('%.(%a+)$')]
  for index, html in ipairs(highlight(regions.text(file), language)) do
    by_number[file.lines[index].number] = html
  end
  return by_number
end

local function in_columns(old, new)
  return ('%4s %4s'):format(old, new)
end

local function diff_lines(block)
  local old, new = file_lines(block.attributes.from), file_lines(block.attributes.to)
  local lines = {}
  for _, row in ipairs(common.lines(block.attributes.rows)) do
    local sign, first, second = row:match('^(.)(%d*) ?(%d*)$')
    local html
    if sign == '+' then
      html = line_html('line added', in_columns('', first), new[tonumber(first)], '+ ')
    elseif sign == '-' then
      html = line_html('line removed', in_columns(first, ''), old[tonumber(first)], '- ')
    elseif sign == '@' then
      html = '<span class="line gap"> </span>'
    else
      html = line_html('line', in_columns(first, second), new[tonumber(second)], '  ')
    end
    lines[#lines + 1] = html
  end
  return lines
end

-- A diff written out by hand, or of unknown make: coloured by its first characters.
local function plain_diff_lines(block)
  local lines = {}
  for index, line in ipairs(common.lines(block.text)) do
    local sign = line:sub(1, 1)
    local class = sign == '+' and 'line added' or sign == '-' and 'line removed' or 'line'
    sign = sign ~= '' and common.escape(sign) or ' '
    lines[index] = line_html(class, nil, common.escape(line:sub(2)), sign)
  end
  return lines
end

local function line_range(numbers)
  local first, last = numbers:match('^(%d+)'), numbers:match('(%d+)$')
  return first == last and 'line ' .. first or 'lines ' .. first .. '–' .. last
end

-- Where the code comes from: "code/02-fork/server.c, lines 41–63".
local function origin(block)
  local attributes = block.attributes
  if attributes.rows then
    local text = '<span class="origin">from <code>%s</code> to <code>%s</code></span>'
    return text:format(attributes.from, attributes.to)
  elseif attributes.include then
    local text = '<span class="origin"><code>%s</code>, %s</span>'
    return text:format(attributes.include, line_range(attributes.numbers))
  end
end

local function caption_html(block)
  local _, by_label = labels.load()
  local row = by_label[block.identifier]
  local parts = {}
  if row and common.form ~= 'slides' then
    parts[#parts + 1] = ('<span class="number">%s.</span>'):format(labels.name(row))
  end
  if block.attributes.caption then
    local inlines = pandoc.read(block.attributes.caption, 'markdown').blocks
    local html = pandoc.write(pandoc.Pandoc(inlines), 'html'):gsub('^<p>', ''):gsub('</p>%s*$', '')
    parts[#parts + 1] = ('<span class="caption">%s</span>'):format(html)
  end
  parts[#parts + 1] = origin(block)
  return #parts > 0 and '<figcaption>' .. table.concat(parts, ' ') .. '</figcaption>' or nil
end

local function columns_of(html_lines)
  local columns = 0
  for _, line in ipairs(html_lines) do
    local text = line:gsub('<span class="sign">[^<]*', ''):gsub('<[^>]*>', ''):gsub('&#?%w+;', ' ')
    columns = math.max(columns, utf8.len(text))
  end
  return columns
end

-- A listing that does not fit is unreadable from the last row; the author has to choose the lines
-- that matter. A short one is drawn larger: returns the class for that.
local function fit_slide(block, html_lines)
  local needle = block.attributes.region or block.attributes['function'] or block.attributes.hunk or common.lines(block.text)[1]
  local lines, columns = #html_lines, columns_of(html_lines)
  if lines > MAX_SLIDE_LINES then
    common.fail(('a listing of %d lines; a slide holds %d'):format(lines, MAX_SLIDE_LINES), needle)
  elseif columns > MAX_SLIDE_COLUMNS then
    common.fail(('a listing %d columns wide; a slide holds %d'):format(columns, MAX_SLIDE_COLUMNS),
      needle)
  end
  if block.classes:includes('console') then
    return ''
  end
  return lines <= 6 and columns <= 46 and ' large'
    or lines <= 9 and columns <= 54 and ' medium'
    or ''
end

-- Lines of two slides that say the same move to their new places (data-auto-animate).
local function with_ids(html_lines)
  local seen = {}
  return pandoc.List(html_lines):map(function(line)
    local text = line:gsub('<[^>]*>', ''):gsub('^%s+', '')
    seen[text] = (seen[text] or 0) + 1
    return (line:gsub('^<span ', ('<span data-id="%s:%d" '):format(text:gsub('"', '&quot;'), seen[text]), 1))
  end)
end

local function draw(block)
  local class, lines = 'listing', nil
  local is_console = block.classes:includes('console')
  if block.attributes.rows then
    class, lines = 'listing diff', diff_lines(block)
  elseif block.classes[1] == 'diff' then
    class, lines = 'listing diff', plain_diff_lines(block)
  elseif is_console then
    class, lines = 'listing console', console_lines(block)
  else
    class, lines = block.attributes.numbers and 'listing numbered' or 'listing', code_lines(block)
  end
  if common.form == 'slides' then
    class = class .. fit_slide(block, lines)
  end
  if block.classes:includes('morph') then
    lines = with_ids(lines)
  end
  local _, steps = steps_of(block.attributes.steps)
  local caption = caption_html(block)
  local id = block.identifier ~= '' and (' id="%s"'):format(common.html_id(block.identifier)) or ''
  local stepped = steps > 0 and (' data-steps="%d"'):format(steps) or ''
  local html = ('<figure class="%s"%s%s>\n<pre tabindex="0"><code>%s</code></pre>\n%s</figure>')
    :format(class, id, stepped, table.concat(lines, '\n'), caption or '')
  for step = 1, steps do
    html = html .. ('<span class="fragment step" data-step="%d"></span>'):format(step)
  end
  return common.raw(html)
end

function listings.apply(doc)
  return doc:walk { CodeBlock = draw }
end

return listings
