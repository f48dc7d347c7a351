-- What all filters share: the settings of this run, one-line errors with file and line, reading
-- files, dependencies, labels.
--
-- pandoc runs one entry filter (weave.lua or form.lua); it calls start() first and finish() last.
-- Between them every filter reports what is wrong with fail(), so an author sees all mistakes of a
-- file at once. finish() leaves with status 1 before pandoc has written anything.

local common = {
  form = 'chapter', -- chapter | slides (weave.lua); page | answers | book | epub | deck (form.lua)
  build = 'build',
  results = 'here', -- "reference": every number is the reference run's
  weave = 'build/weave', -- where tables.py has put its tables
  part = 'part', -- how the name of a file ends until it is whole
}

local settings = {
  'form', 'build', 'weave', 'results', 'inputs', 'depfile', 'order', 'styles', 'scripts',
  'searchfile', 'part', 'speaker', 'event', 'date', 'url', 'qrcode',
}
local errors, dependencies, texts, tables = pandoc.List {}, {}, {}, {}

-- Takes the settings (-M name=value) out of the metadata. Call it before anything else.
function common.start(doc)
  common.source = PANDOC_STATE.input_files[1] or '(standard input)' -- chapters/02-fork.md
  common.slug = common.source:gsub('^.*/', ''):gsub('%.md$', '') -- 02-fork
  for _, name in ipairs(settings) do
    if doc.meta[name] ~= nil then
      common[name] = pandoc.utils.stringify(doc.meta[name])
      doc.meta[name] = nil
    end
  end
end

-- Whole text of a file, or nil. Read once.
function common.read(path)
  if texts[path] == nil then
    local file = io.open(path, 'rb')
    texts[path] = file and file:read('a') or false
    if file then file:close() end
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

-- For walk(): an element goes to the handler of one of its classes.
function common.by_class(handlers)
  return function(element)
    local class = element.classes:find_if(function(class) return handlers[class] end)
    return handlers[class] and handlers[class](element)
  end
end

-- common.fail('region="x"', 'unknown region "%s"', name): the first text is what to look for in the
-- source, for pandoc tells filters no positions; the line is the first that holds it.
function common.fail(needle, message, ...)
  local text = needle and common.read(common.source)
  local at = text and text:find(needle, 1, true)
  local _, newlines = (text or ''):sub(1, at or 0):gsub('\n', '')
  common.fail_at(common.source .. (at and ':' .. newlines + 1 or ''), message, ...)
end

function common.fail_at(place, message, ...)
  local line = place .. ': ' .. message:format(...)
  if not errors:includes(line) then errors:insert(line) end
end

-- The file appears whole: make reads the lists of dependencies while another make may write them. Where the disk is full
-- it may be close() that says so.
function common.write(path, text)
  local part = path .. '.' .. common.part
  local file, reason = io.open(part, 'wb')
  if file then
    local written, why = file:write(text)
    local closed, late = file:close()
    file, reason = nil, why or late
    if written and closed then file, reason = os.rename(part, path) end
    if not file then os.remove(part) end
  end
  if not file then common.fail_at(path, '%s', reason) end
end

-- Called also before a filter that relies on what the others have bound.
function common.stop_if_failed()
  if #errors > 0 then
    io.stderr:write(table.concat(errors, '\n'), '\n')
    os.exit(1)
  end
end

function common.finish()
  common.stop_if_failed()
  if not common.depfile then return end
  local lines, target = pandoc.List {}, common.depfile:gsub('%.d$', '.json')
  for path in pairs(dependencies) do
    -- A file that has gone must not stop make: with a rule of its own it means that the page is old.
    lines:insert(('%s: %s\n%s:\n'):format(target, path, path))
  end
  lines:sort()
  common.write(common.depfile, table.concat(lines))
  common.stop_if_failed()
end

-- ---- labels -------------------------------------------------------------------------------------

-- What can be referred to, as tables.py has written it down: rows in the order of the book, with the
-- fields that are named there; and the same by label.
function common.labels()
  if not tables.labels then
    tables.labels, tables.by_label = pandoc.List(dofile(common.weave .. '/labels.lua')), {}
    for _, row in ipairs(tables.labels) do
      tables.by_label[row.label or {}] = row -- a section without label cannot be looked up
    end
  end
  return tables.labels, tables.by_label
end

local words = { figure = 'Figure', listing = 'Listing', page = 'Chapter' }
local unnumbered = { part = 'the part', appendix = 'the appendix', front = 'the page' }

-- "Figure 2.3", "Listing 2.1", "Chapter 2"; a page without a number is named by its title: the chapter “The scheduler”.
-- Other things without a number have their title alone, in quotation marks: it may be the subject of a sentence.
function common.name(row)
  local is_page = row.kind == 'page'
  local word = is_page and (row.number or ''):match('^%a$') and 'Appendix' or words[row.kind]
  if word and row.number then return word .. ' ' .. row.number end
  if is_page then return ('%s “%s”'):format(unnumbered[row.role] or 'the chapter', row.text or row.slug) end
  return row.text and ('“%s”'):format(row.text) or row.label
end

-- fig:fork-latency -> fig-fork-latency: EPUB allows no colon in an id.
function common.html_id(label) return (label:gsub(':', '-')) end

local entities = { ['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;' }

function common.escape(text) return (text:gsub('[&<>"]', entities)) end

function common.raw(html) return pandoc.RawBlock('html', html) end

-- "Figure 2.3." before a caption; nothing on slides, and where there is no label.
function common.caption_number(identifier)
  local _, by_label = common.labels()
  local row = by_label[identifier]
  return row and common.form ~= 'slides' and common.name(row) .. '.'
end

-- Lists (pandoc.List) become arrays, other tables objects; a line for each element of a list of tables.
function common.json(value)
  if type(value) == 'string' then
    return '"' .. value:gsub('[%c"\\<]', function(character)
      return ('\\u%04x'):format(character:byte())
    end) .. '"'
  elseif type(value) == 'number' then
    return ('%.10g'):format(value)
  end
  local items, is_list = pandoc.List {}, getmetatable(value) == pandoc.List
  for key, item in (is_list and ipairs or pairs)(value) do
    items:insert((is_list and '' or common.json(key) .. ':') .. common.json(item))
  end
  if not is_list then items:sort() end
  return (is_list and '[%s]' or '{%s}'):format(table.concat(items, is_list and ',\n' or ','))
end

-- On a slide a step leads from one moment of a player or a machine to the next; the first is there from the start.
function common.moments(count)
  local steps = pandoc.List {}
  for step = 1, count - 1 do steps:insert(('<span class="fragment moment" data-moment="%d"></span>'):format(step)) end
  return table.concat(steps)
end

-- Markdown in an attribute: title="Then why `select`?"
function common.inlines(markdown) return pandoc.read(markdown, 'markdown').blocks[1].content end

return common
