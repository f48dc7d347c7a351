-- Figures: ![Caption.](fork-latency.svg){#fig:fork-latency} alone in a paragraph. pandoc 2.17 reads
-- it as a paragraph with an image, pandoc 3 as a Figure; gather() makes one shape of both, a Div of
-- class "figure" around its caption, and draw() turns that into <figure> after the filters for
-- numbers and references have seen the caption.

local common = require 'common'
local labels = require 'labels'

local figures = {}

local function shape(image, caption, identifier, alt)
  local attributes = { src = image.src, alt = alt }
  local classes = pandoc.List { 'figure' }
  classes:extend(image.classes)
  return pandoc.Div({ pandoc.Plain(caption) }, pandoc.Attr(identifier, classes, attributes))
end

-- pandoc 2.17: alt= stays an attribute, the image's text is the caption.
local function from_paragraph(paragraph)
  local image = paragraph.content[1]
  if #paragraph.content == 1 and image.t == 'Image' then
    return shape(image, image.caption, image.identifier, image.attributes.alt)
  end
end

-- pandoc 3: alt= has become the image's text; without it that text is the caption again.
local function from_figure(figure)
  local image = figure.content[1] and figure.content[1].content and figure.content[1].content[1]
  if not image or image.t ~= 'Image' then
    return nil
  end
  local caption = pandoc.utils.blocks_to_inlines(figure.caption.long)
  local alt = pandoc.utils.stringify(image.caption)
  if alt == pandoc.utils.stringify(caption) then
    alt = nil
  end
  local identifier = figure.identifier ~= '' and figure.identifier or image.identifier
  return shape(image, caption, identifier, alt)
end

function figures.gather(doc)
  return doc:walk { Para = from_paragraph, Figure = from_figure }
end

-- Why a figure that has a script was not drawn here, or nil.
local function reason_missing(name)
  local note = common.depend(common.build .. '/figures/' .. name .. '.skipped')
  if note then
    return common.lines(note)[1]
  end
  for extension, tool in pairs { gp = 'gnuplot', dot = 'dot' } do
    local missing = (' ' .. common.missing .. ' '):find(' ' .. tool .. ' ', 1, true)
    if missing and common.exists('figures/' .. name .. '.' .. extension) then
      local package = tool == 'dot' and 'graphviz' or tool
      return ('%s is not installed (apt-get install %s)'):format(tool, package)
    end
  end
end

-- Whose run a figure shows: it is drawn from build/data/EXPERIMENT, which says so. A script that is
-- not called as its experiment names it in a line of its own.
local function source_of(name)
  local script = common.depend('figures/' .. name .. '.gp') or ''
  local experiment = ('\n' .. script):match('\nexperiment = "([^"]+)"') or name
  local meta = common.depend(common.build .. '/data/' .. experiment .. '/meta.gp')
  return meta and meta:match('source%s*=%s*"(%a+)"')
end

local function caption_blocks(div)
  local _, by_label = labels.load()
  local row = by_label[div.identifier]
  local content = pandoc.List {}
  if row and common.form ~= 'slides' then
    content:insert(pandoc.Span(labels.name(row) .. '.', pandoc.Attr('', { 'number' })))
    content:insert(pandoc.Space())
  end
  content:extend(div.content[1].content)
  return pandoc.Plain(content)
end

local function plain_text(inlines)
  local without_labels = pandoc.Span(inlines):walk {
    Span = function(span)
      if span.classes:includes('ref-label') then
        return {}
      end
    end,
  }
  return pandoc.utils.stringify(without_labels)
end

local function picture(div, src, name)
  local alt = div.attributes.alt or plain_text(div.content[1].content)
  if common.depend(common.build .. '/figures/' .. src) then
    return pandoc.Plain { pandoc.Image(alt, 'figures/' .. src) }
  end
  local reason = reason_missing(name)
  if not reason then
    common.fail(('unknown figure %s (no %s/figures/%s)'):format(src, common.build, src), src)
  end
  local text = pandoc.Plain('Not drawn here: ' .. (reason or ''))
  return pandoc.Div({ text }, pandoc.Attr('', { 'not-drawn' }))
end

-- On a slide stage-NAME.svg is built up: first the axes, then with each step one series more. All
-- lie on one another; on paper the last is seen. `upto=2` ends with the second series.
local function stage_plot(div, src)
  local stem, steps = src:gsub('%.svg$', ''), pandoc.List {}
  local last = tonumber(div.attributes.upto) or 9
  for step = 0, last do
    local file = ('%s-%d.svg'):format(stem, step)
    if step > 0 and not common.exists(common.build .. '/figures/' .. file) then
      break
    end
    local one = picture(div, file, stem)
    steps:insert(step == 0 and one or pandoc.Div({ one }, pandoc.Attr('', { 'fragment' })))
  end
  return pandoc.Div(steps, pandoc.Attr('', { 'stage-plot' }))
end

local function draw(div)
  if not div.classes:includes('figure') then
    return nil
  end
  local src = div.attributes.src
  if src:find('/', 1, true) then
    local message = 'a figure is a file of %s/figures, named without a folder: %s'
    common.fail(message:format(common.build, src), src)
    return {}
  end
  local name = src:gsub('%.%a+$', '')
  local id = div.identifier ~= '' and (' id="%s"'):format(common.html_id(div.identifier)) or ''
  local source = common.results ~= 'reference' and common.form ~= 'slides' and source_of(name)
  local label = ({ here = 'your machine', reference = 'reference run' })[source or '']
  return {
    common.raw(('<figure class="%s"%s>'):format(table.concat(div.classes, ' '), id)),
    common.raw(label and ('<span class="run-label %s">%s</span>'):format(source, label) or ''),
    src:find('^stage%-') and stage_plot(div, src) or picture(div, src, name),
    common.raw('<figcaption>'),
    caption_blocks(div),
    common.raw('</figcaption>\n</figure>'),
  }
end

function figures.draw(doc)
  return doc:walk { Div = draw }
end

return figures
