-- What all filters share: the settings of this run, one-line errors with file and line, reading
-- files, dependencies.
--
-- pandoc runs one entry filter (weave.lua or form.lua); it calls start() first and finish() last.
-- Between them every filter reports what is wrong with fail(), so an author sees all mistakes of a
-- file at once. finish() leaves with status 1 before pandoc has written anything.

local common = {
  form = 'chapter', -- chapter | slides (weave.lua); page | answers | book | epub | deck (form.lua)
  build = 'build',
  results = 'here', -- "reference": every number is the reference run's
  weave = 'build/weave', -- where tables.py has put its tables
  missing = '', -- drawing tools that are not installed, with blanks between
  slug = '', -- 02-fork
  source = '', -- chapters/02-fork.md
  part = 'part', -- how the name of a file ends until it is whole
}

local settings = {
  'form', 'build', 'weave', 'results', 'missing', 'slug', 'inputs', 'depfile', 'order', 'styles',
  'scripts', 'searchfile', 'part', 'speaker', 'event', 'date', 'url', 'qrcode',
}
local errors, dependencies, texts, tables = {}, {}, {}, {}

-- Takes the settings (-M name=value) out of the metadata. Call it before anything else.
function common.start(doc)
  common.source = PANDOC_STATE.input_files[1] or '(standard input)'
  for _, name in ipairs(settings) do
    if doc.meta[name] ~= nil then
      common[name] = pandoc.utils.stringify(doc.meta[name])
      doc.meta[name] = nil
    end
  end
  if common.slug == '' then
    common.slug = common.source:gsub('^.*/', ''):gsub('%.md$', '')
  end
end

-- Whole text of a file, or nil. Read once.
function common.read(path)
  if texts[path] == nil then
    local file = io.open(path, 'rb')
    texts[path] = file and file:read('a') or false
    if file then
      file:close()
    end
  end
  return texts[path] or nil
end

-- Like read, and what is made now has to be made again when the file changes.
function common.depend(path)
  local text = common.read(path)
  dependencies[path] = text and true -- a file that is not there would look new to make each time
  return text
end

-- What tables.py has made of build/data/NAME.json.
function common.data(name)
  local path = common.weave .. '/data/' .. name .. '.lua'
  tables[path] = tables[path] or load(common.depend(path) or 'return nil', path)()
  return tables[path]
end

function common.exists(path)
  local file = io.open(path, 'rb')
  if file then
    file:close()
  end
  return file ~= nil
end

function common.lines(text)
  local lines = {}
  for line in (text:gsub('\n$', '') .. '\n'):gmatch('(.-)\n') do
    lines[#lines + 1] = (line:gsub('\r$', ''))
  end
  return lines
end

-- "holds, no rule" -> { "holds", "no rule" }: what matches the pattern, without blanks at the ends.
function common.split(text, pattern)
  local list = pandoc.List {}
  for part in (text or ''):gmatch(pattern) do
    list:insert((part:gsub('^%s+', ''):gsub('%s+$', '')))
  end
  return list
end

-- pandoc tells filters no positions: the line is the first of the source that holds this text.
local function line_of(needle)
  local text = needle and common.read(common.source)
  local at = text and text:find(needle, 1, true)
  if not at then
    return ''
  end
  local _, newlines = text:sub(1, at):gsub('\n', '')
  return ':' .. newlines + 1
end

-- common.fail('unknown region x', 'region="x"'): the second text is what to look for in the source.
function common.fail(message, needle)
  common.fail_at(common.source .. line_of(needle), message)
end

function common.fail_at(place, message)
  local line = place .. ': ' .. message
  if not errors[line] then
    errors[line] = true
    errors[#errors + 1] = line
  end
end

local function write_dependencies()
  local names = {}
  for path in pairs(dependencies) do
    names[#names + 1] = path
  end
  table.sort(names)
  local target = common.depfile:gsub('%.d$', '.json')
  local lines = { target .. ':' }
  for _, path in ipairs(names) do
    lines[#lines + 1] = ' \\\n  ' .. path
  end
  lines[#lines + 1] = '\n'
  -- A file that has gone must not stop make: with a rule of its own it means that the page is old.
  for _, path in ipairs(names) do
    lines[#lines + 1] = path .. ':\n'
  end
  common.write(common.depfile, table.concat(lines))
end

-- The file appears whole: make reads the lists of dependencies while another make may write them.
function common.write(path, text)
  local part = path .. '.' .. common.part
  local file, reason = io.open(part, 'wb')
  if file then
    file:write(text)
    file:close()
    file, reason = os.rename(part, path)
  end
  if not file then
    common.fail_at(path, reason)
  end
end

-- Called also between the filters, before one that relies on what the others have bound.
function common.stop_if_failed()
  if #errors > 0 then
    io.stderr:write(table.concat(errors, '\n'), '\n')
    os.exit(1)
  end
end

function common.finish()
  common.stop_if_failed()
  if common.depfile then
    write_dependencies()
    common.stop_if_failed()
  end
end

-- fig:fork-latency -> fig-fork-latency: EPUB allows no colon in an id.
function common.html_id(label)
  return (label:gsub(':', '-'))
end

local entities = { ['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;' }

function common.escape(text)
  return (text:gsub('[&<>"]', entities))
end

function common.raw(html)
  return pandoc.RawBlock('html', html)
end

-- 02-fork -> 2, 02b-processes -> 2b, appendix-a-common -> A, glossary -> nil
function common.chapter_number(slug)
  local digits, letter = slug:match('^(%d+)(%a?)%-')
  local appendix = slug:match('^appendix%-(%a)%-')
  return digits and (tonumber(digits) .. letter) or appendix and appendix:upper()
end

return common
