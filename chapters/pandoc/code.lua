-- All code blocks, as README.md has them: functions, regions and files by name, diffs of two of them,
-- and what is written out. What they show is bound first, and drawn last. pandoc's highlighter
-- colours the lines, and each is wrapped in a span of its own, so that its number (data-n, drawn by
-- the style sheet: no link, never copied), marks, steps and signs find their place.

local common = require 'common'

local code = {}

local MAX_SLIDE_LINES, MAX_SLIDE_COLUMNS = 12, 64

-- ---- files --------------------------------------------------------------------------------------

-- "region: x" or "endregion: x" in a comment of its own: what, and x; nil for x where it only looks
-- like one.
local function marker(line)
  local kind, rest = line:match('^%s*[/#;%-*]+%s*(%l*region):(.*)$')
  if kind == 'region' or kind == 'endregion' then
    return kind, rest:match('^%s*([a-z0-9-]+)%s*%*?/?%s*$')
  end
end

-- What the declaration that begins with this text (one line, or several put together) declares.
local function declared(text)
  return text:match('^#define%s+([%w_]+)')
    or text:match('^[seu]%l+%s+([%w_]+)%s*{') -- struct, enum, union
    or text:match('^struct {.*}%s*([%w_]+)')
    or text:match('^static struct {.*}%s*([%w_]+)')
    or text:match('^[^=({]-([%w_]+)%(')
    or text:match('^[^=(]-([%w_]+)%s*[%[=;]')
end

-- Whether the declaration is complete that ends with this line: all braces are closed.
local function completes(line, text)
  if text:find('^#') then return not line:find('\\$') end
  local _, opened = text:gsub('{', '')
  local _, closed = text:gsub('}', '')
  return opened == closed and (line:find('^}') or line:find(';%s*$') or line:find(';%s*/%*')) ~= nil
end

-- The named declarations of column 0: name -> { first=, last=, twice= }, with the comment above.
local function declarations(lines)
  local found, comment, start, text = {}, nil, nil, nil
  for index, line in ipairs(lines) do
    if start then
      text = text .. ' ' .. line.text
    elseif line.text:find('^/%*') then
      comment = index
    elseif line.text:find('^[%a_#]') and not line.text:find('^#[^d]') then
      start, text = index, line.text
    elseif not line.text:find('^ %*') then
      comment = nil
    end
    if start and completes(line.text, text) then
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

-- { lines = {{number=, text=}..}, regions = {name = {first=, last=}} }; first and last count lines
-- without markers.
local function parse(path, text)
  local file = { lines = pandoc.List {}, regions = {} }
  for number, line in ipairs(common.lines(text)) do
    local kind, name = marker(line)
    local region, place = name and file.regions[name], path .. ':' .. number
    if not kind then
      file.lines:insert { number = number, text = line }
    elseif not name then
      common.fail_at(place, 'a region marker with no name of a-z, 0-9 and "-"')
    elseif kind == 'region' and region then
      common.fail_at(place, 'region "%s" is doubled, first on line %d', name, region.line)
    elseif kind == 'region' then
      file.regions[name] = { first = #file.lines + 1, line = number }
    elseif kind == 'endregion' and not (region and not region.last) then
      common.fail_at(place, 'endregion "%s" without its region', name)
    elseif kind == 'endregion' then
      region.last = #file.lines
    end
  end
  for name, region in pairs(file.regions) do
    if not region.last then
      common.fail_at(path .. ':' .. region.line, 'region "%s" is not closed', name)
      region.last = #file.lines
    end
  end
  file.declarations = declarations(file.lines)
  file.text = table.concat(file.lines:map(function(line) return line.text end), '\n') .. '\n'
  return file
end

local parsed = {}

-- The parsed file, or nil after a message.
local function open(path, needle)
  local text = common.depend(path)
  if not text then return common.fail(needle, 'cannot read %s', path) end
  parsed[path] = parsed[path] or parse(path, text)
  return parsed[path]
end

-- The ranges of lines that a block asks for; nil after a message.
local function ranges_of(attributes, file)
  local region, names = attributes.region, attributes['function']
  if region then
    if file.regions[region] then return { file.regions[region] } end
    return common.fail('region="' .. region .. '"', 'unknown region "%s" in %s', region, attributes.include)
  elseif not names then
    return { { first = 1, last = #file.lines } }
  end
  local ranges = pandoc.List {}
  for name in names:gmatch('[%w_]+') do
    local range = file.declarations[name]
    if not range or range.twice then
      local message = range and '"%s" is there twice in %s' or 'nothing called "%s" begins in %s'
      return common.fail('function="' .. names .. '"', message, name, attributes.include)
    end
    ranges:insert(range)
  end
  return ranges
end

-- The lines of these ranges without blank lines at the ends, a blank one between two ranges,
-- dedented.
local function cut(file, ranges)
  local lines, indent = pandoc.List {}, math.huge
  for _, range in ipairs(ranges) do
    local first, last = range.first, range.last
    while first <= last and not file.lines[first].text:find '%S' do first = first + 1 end
    while last >= first and not file.lines[last].text:find '%S' do last = last - 1 end
    if #lines > 0 and lines[#lines].number + 1 ~= file.lines[first].number then
      lines:insert { text = '' }
    end
    for place = first, last do
      local line = file.lines[place]
      lines:insert { number = line.number, text = line.text, place = place }
      local blanks = line.text:match '^( *)%S' -- nil for a blank line
      indent = math.min(indent, blanks and #blanks or indent)
    end
  end
  for _, line in ipairs(lines) do line.text = line.text:sub(indent + 1) end
  return lines
end

-- "lines 12–20, 3–7"; what one line parts, blank or a mark, is not apart.
local function numbers_of(lines)
  local runs = pandoc.List {}
  for _, line in ipairs(lines) do
    local run = runs[#runs]
    if run and line.number and line.number > run.last and line.number <= run.last + 2 then
      run.last = line.number
    elseif line.number then
      runs:insert { first = line.number, last = line.number }
    end
  end
  local texts = runs:map(function(run)
    return run.first == run.last and run.first or run.first .. '–' .. run.last
  end)
  return (#runs == 1 and runs[1].first == runs[1].last and 'line ' or 'lines ') .. table.concat(texts, ', ')
end

local NUMBERS = '^(%d+)%-?(%d*)$'

-- The first line from this one on that holds the text, or nil.
local function line_with(text, lines, from)
  for index = from or #lines + 1, #lines do
    if lines[index].text:find(text, 1, true) then return index end
  end
end

-- "accept", "2-3", "n = read(" or "n = read( ... break": the first and the last line of the listing that are meant, or
-- nil. No other line has the text. The one behind the dots ends in the first line, from there on, that has it.
local function span_of(item, lines, region)
  local from, to = item:match(NUMBERS)
  if from then
    from, to = tonumber(from), tonumber(to) or tonumber(from)
    return from >= 1 and from <= to and to <= #lines and from, to
  elseif not region then
    local first, last = item:match('^(.-) %.%.%. (.+)$')
    from = line_with(first or item, lines, 1)
    to = line_with(last or item, lines, from)
    return to and not line_with(first or item, lines, from + 1) and from, to
  end
  for index, line in ipairs(lines) do
    from = line.place == region.first and index or from
    to = line.place == region.last and index or to
  end
  return to and from, to
end

-- "loop 3-4" -> { "loop", "3-4" }; what is not all regions and numbers is a text.
local function items_of(part, regions)
  local items = common.split(part, '%S+')
  local is_text = items:find_if(function(item) return not (regions[item] or item:match(NUMBERS)) end)
  return is_text and pandoc.List { part } or items
end

-- mark="fork | n = read(", or steps="accept | close(fd) ... }": gives a class to lines of the listing, by the names of
-- regions inside it or by a text in them. By their numbers only if they are written here: those of a file move with its
-- next change. Returns how many steps there are.
local function stress(block, name, lines, regions)
  local steps = common.split(block.attributes[name], '[^|]+')
  local is_of_a_file = block.attributes.include or block.attributes.from
  local needle = ('%s="%s"'):format(name, block.attributes[name] or '')
  for step, part in ipairs(steps) do
    for _, item in ipairs(items_of(part, regions)) do
      local from, to = span_of(item, lines, regions[item])
      if item:match(NUMBERS) and is_of_a_file then
        common.fail(needle, '%s: line %s of a file may be another one soon: give a text that is in it', name, item)
      elseif not from then
        common.fail(needle, '%s: "%s" is neither a region inside this listing nor lines of it', name, item)
      end
      for index = from or 1, from and to or 0 do
        lines[index].class = lines[index].class .. (name == 'mark' and ' marked' or ' step-' .. step)
      end
    end
  end
  return #steps
end

-- ---- diffs --------------------------------------------------------------------------------------

-- diff(1) wants files.
local function run_diff(old, new, context)
  return pandoc.system.with_temporary_directory('diff', function(folder)
    common.write(folder .. '/old', old.text)
    common.write(folder .. '/new', new.text)
    local script = 'diff -U "$0" "$1/old" "$1/new" || test $? = 1' -- which says that they differ
    return pandoc.pipe('sh', { '-c', script, context, folder }, '')
  end)
end

local signs = { ['+'] = 'line added', ['-'] = 'line removed', [' '] = 'line' }

-- The hunks of diff's output: { lines = {..}, text = "all of them" } each. Its line numbers count
-- lines without markers; the reader is shown those of the files.
local function hunks_of(output, old, new)
  local hunks, left, right = pandoc.List {}, 0, 0
  for _, line in ipairs(common.lines(output)) do
    local from, to = line:match('^@@ %-(%d+)[,%d]* %+(%d+)[,%d]* @@')
    local hunk, sign, text = hunks[#hunks], line:sub(1, 1), line:sub(2)
    if from then
      left, right = tonumber(from), tonumber(to)
      hunks:insert { lines = pandoc.List {}, text = '' }
    elseif hunk and signs[sign] then -- not "\ No newline at end of file"
      local before, after = old.lines[left], new.lines[right]
      hunk.lines:insert {
        class = signs[sign], sign = sign .. ' ', text = text,
        number = ('%4s %4s'):format(sign == '+' and '' or before.number, sign == '-' and '' or after.number),
        file = sign == '-' and old or new, place = sign == '-' and left or right,
      }
      hunk.text = hunk.text .. text .. '\n'
      left, right = left + (sign ~= '+' and 1 or 0), right + (sign ~= '-' and 1 or 0)
    end
  end
  return hunks
end

-- hunk="waitpid | a text": the hunks in which these texts occur, each in one; nil: all of them.
local function choose(hunks, wanted)
  return wanted and common.split(wanted, '[^|]+'):map(function(text)
    local found = hunks:filter(function(hunk) return hunk.text:find(text, 1, true) end)
    if #found ~= 1 then
      common.fail('hunk="' .. wanted, 'hunk="%s" occurs in %d of %d hunks, not in one', text, #found, #hunks)
    end
    return found[1] or { lines = {} }
  end) or hunks
end

-- A slug stands for its server.c; a name with a slash is a file.
local function path_of(name)
  return name:find('/', 1, true) and name or 'code/' .. name .. '/server.c'
end

local function diff_lines(attributes)
  local from, to = path_of(attributes.from), path_of(attributes.to or '')
  local old, new = open(from, attributes.from), open(to, attributes.to)
  if not (old and new) then return nil end
  local lines = pandoc.List {}
  local hunks = hunks_of(run_diff(old, new, attributes.context or '3'), old, new)
  if #hunks == 0 then
    common.fail('from="' .. attributes.from, 'diff: %s and %s do not differ', from, to)
  end
  for index, hunk in ipairs(choose(hunks, attributes.hunk)) do
    lines:extend(index > 1 and { { class = 'line gap', text = ' ' } } or {})
    lines:extend(hunk.lines)
  end
  attributes.origin = ('from <code>%s</code> to <code>%s</code>'):format(from, to)
  return lines
end

-- ---- binding ------------------------------------------------------------------------------------

local listings = pandoc.List {} -- of the file: lines, and how many steps

local function included_lines(attributes)
  local path, region = attributes.include, attributes.region
  local file = open(path, path)
  local ranges = file and ranges_of(attributes, file)
  local lines = ranges and cut(file, ranges)
  if lines and #lines == 0 then
    local needle = region and 'region="' .. region .. '"'
    return common.fail(needle, 'region "%s" in %s holds no line', region or '(whole file)', path)
  elseif lines then
    attributes.origin = ('<code>%s</code>, %s'):format(path, numbers_of(lines))
  end
  return lines, file and file.regions
end

-- What an author has written: with "$ ", the shell's prompt, or "# ", that of root, and "> " after it, the one for a
-- command that goes on, in a console; with signs in a diff.
local function written_lines(block)
  local typing = false
  return pandoc.List(common.lines(block.text)):map(function(text)
    if block.classes:includes('console') then
      local prompt, typed = text:match('^([$#>] )(.*)$')
      typing = prompt == '$ ' or prompt == '# ' or typing and prompt == '> '
      return typing and { class = 'line typed', sign = prompt, text = typed, plain = true }
        or { text = text, plain = true }
    elseif block.classes[1] == 'diff' then
      local sign = text:sub(1, 1)
      return { class = signs[sign], sign = sign ~= '' and sign or ' ', text = text:sub(2), plain = true }
    end
    return { text = text }
  end)
end

local function bind(block)
  local attributes, lines, regions = block.attributes, nil, {}
  if block.classes:includes('diff') and attributes.from then
    lines = diff_lines(attributes)
  elseif attributes.include then
    lines, regions = included_lines(attributes)
    block.text = lines and table.concat(lines:map(function(line) return line.text end), '\n')
  else
    for _, name in ipairs { 'region', 'function' } do
      if attributes[name] then
        common.fail(('%s="%s"'):format(name, attributes[name]), '%s= without include=', name)
      end
    end
    lines = written_lines(block)
  end
  if not lines then return nil end
  for _, line in ipairs(lines) do line.class = line.class or 'line' end
  stress(block, 'mark', lines, regions)
  lines.steps = stress(block, 'steps', lines, regions)
  listings:insert(lines)
  attributes.listing = tostring(#listings)
  return block
end

function code.bind(doc) return doc:walk { CodeBlock = bind } end

-- ---- drawing ------------------------------------------------------------------------------------

-- Highlighted HTML of each line. Tokens of skylighting never span lines, so the lines can be taken
-- apart.
local function highlight(text, language)
  local block = pandoc.CodeBlock(text, pandoc.Attr('', language and { language } or {}))
  local html = pandoc.write(pandoc.Pandoc { block }, 'html')
  local lines = common.lines(html:match('<code[^>]*>(.*)</code></pre>'))
  for index, line in ipairs(lines) do
    local inner = line:gsub('^<span id="cb%d+%-%d+"><a [^>]*></a>', '')
    lines[index] = inner ~= line and inner:gsub('</span>$', '') or line
  end
  return lines
end

-- Lines of two slides that say the same move to their new places (data-auto-animate).
local function name_lines(lines)
  local seen = {}
  for _, line in ipairs(lines) do
    local text = common.escape(line.text:gsub('^%s+', ''))
    seen[text] = (seen[text] or 0) + 1
    line.id = (' data-id="%s:%d"'):format(text, seen[text])
  end
end

local function line_html(line, html)
  local number = line.number and (' data-n="%s"'):format(line.number) or ''
  local sign = line.sign and '<span class="sign">' .. common.escape(line.sign) .. '</span>' or ''
  return ('<span%s class="%s"%s>%s%s</span>'):format(line.id or '', line.class, number, sign, html)
end

local function html_of(block, lines)
  local coloured = not block.attributes.from and highlight(block.text, block.classes[1])
  return lines:map(function(line, index)
    local file = line.file
    if file then -- all of them are C
      file.html = file.html or highlight(file.text, 'c')
      return line_html(line, file.html[line.place])
    end
    return line_html(line, coloured and not line.plain and coloured[index] or common.escape(line.text))
  end)
end

local function caption_html(block)
  local text, parts = block.attributes.caption, pandoc.List {}
  local function add(class, html)
    parts:insert(html and ('<span class="%s">%s</span>'):format(class, html) or nil)
  end
  add('number', common.caption_number(block.identifier))
  add('caption', text and pandoc.write(pandoc.Pandoc { pandoc.Plain(common.inlines(text)) }, 'html'))
  add('origin', block.attributes.origin)
  return #parts > 0 and '<figcaption>' .. table.concat(parts, ' ') .. '</figcaption>' or ''
end

-- A listing that does not fit is unreadable from the last row; the author has to choose the lines
-- that matter. A short one is drawn larger: returns the class for that.
local function fit_slide(block, lines)
  local attributes, columns = block.attributes, 0
  for _, line in ipairs(lines) do columns = math.max(columns, utf8.len(line.text)) end
  if #lines > MAX_SLIDE_LINES or columns > MAX_SLIDE_COLUMNS then
    local needle = attributes.region or attributes['function'] or attributes.hunk or lines[1].text
    common.fail(needle, 'a listing of %d lines and %d columns; a slide holds %d by %d', #lines,
      columns, MAX_SLIDE_LINES, MAX_SLIDE_COLUMNS)
  end
  return block.classes:includes('console') and ''
    or #lines <= 6 and columns <= 46 and ' large'
    or #lines <= 9 and columns <= 54 and ' medium'
    or ''
end

-- says="of the first step | of the second": a sentence below the listing for each step; on paper all stand there.
local function said_at_steps(block, steps)
  local says = common.split(block.attributes.says, '[^|]+')
  if #says == 0 then return '' end
  if #says ~= steps then common.fail('says="', 'says has %d sentences for %d steps', #says, steps) end
  local items = pandoc.List {}
  for step, text in ipairs(says) do items:insert(('<li><b>%d</b> %s</li>'):format(step, common.escape(text))) end
  return '<ol class="says">' .. table.concat(items) .. '</ol>'
end

local function draw(block)
  local lines = listings[tonumber(block.attributes.listing)]
  local class = block.attributes.from and ' diff' or block.attributes.include and ' numbered'
    or block.classes:includes('console') and ' console' or block.classes[1] == 'diff' and ' diff'
    or block.classes[1] == 'sh' and ' typed' or ''
  if common.form == 'slides' then class = class .. fit_slide(block, lines) end
  if block.classes:includes('morph') then name_lines(lines) end
  local id = block.identifier ~= '' and (' id="%s"'):format(common.html_id(block.identifier)) or ''
  if block.attributes.says then class = class .. ' said' end
  local stepped = lines.steps > 0 and (' data-steps="%d"'):format(lines.steps) or ''
  local html = ('<figure class="listing%s"%s%s>\n<pre tabindex="0"><code>%s</code></pre>\n%s</figure>')
    :format(class, id, stepped, table.concat(html_of(block, lines), '\n'), caption_html(block))
  for step = 1, lines.steps do
    html = html .. ('<span class="fragment step" data-step="%d"></span>'):format(step)
  end
  return common.raw(html .. said_at_steps(block, lines.steps))
end

function code.draw(doc) return doc:walk { CodeBlock = draw } end

return code
