-- Figures: ![Caption.](fork-latency.svg){#fig:fork-latency} alone in a paragraph. pandoc 2.17 reads
-- it as a paragraph with an image, pandoc 3 as a Figure; gather() makes one shape of both, a Div of
-- class "figure" around its caption, and draw() turns that into <figure> after the filters for
-- numbers and references have seen the caption.

local common = require 'common'
local numbers = require 'numbers'

local figures = {}

local function shape(image, caption, identifier, alt)
  local classes = pandoc.List { 'figure' } .. image.classes
  return pandoc.Div({ pandoc.Plain(caption) }, pandoc.Attr(identifier, classes, { src = image.src, alt = alt }))
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
  if image and image.t == 'Image' then
    local caption = pandoc.utils.blocks_to_inlines(figure.caption.long)
    local alt = pandoc.utils.stringify(image.caption)
    local identifier = figure.identifier ~= '' and figure.identifier or image.identifier
    return shape(image, caption, identifier, alt ~= pandoc.utils.stringify(caption) and alt or nil)
  end
end

function figures.gather(doc) return doc:walk { Para = from_paragraph, Figure = from_figure } end

-- The caption in words, without the small labels of the runs.
local function words_of(inlines)
  local function drop() return {} end
  local walked = pandoc.Span(inlines):walk { Span = common.by_class { ['ref-label'] = drop } }
  return pandoc.utils.stringify(walked)
end

-- A plot has letters for a page: on a telephone it scrolls in a place of its own (book.css), so that they can be read.
local function is_plot(svg) return svg and svg:find('id="gnuplot_canvas"', 1, true) end

-- The picture, or why it was not drawn here: `make figures` leaves the reason in its place.
local function picture(div, src, svg)
  local path = common.build .. '/figures/' .. src
  if common.depend(path) then
    local image = pandoc.Plain { pandoc.Image(div.attributes.alt or words_of(div.content[1].content), 'figures/' .. src) }
    return is_plot(svg) and common.form ~= 'slides' and pandoc.Div({ image }, pandoc.Attr('', { 'plot' })) or image
  end
  local reason = common.depend((path:gsub('%.%a+$', '.skipped')))
  if not reason then common.fail(src, 'unknown figure %s (no %s)', src, path) end
  local text = pandoc.Plain('Not drawn here: ' .. common.lines(reason or '')[1])
  return pandoc.Div({ text }, pandoc.Attr('', { 'not-drawn' }))
end

-- On a slide stage-NAME.svg is built up: first the axes, then with each step one series more. All
-- lie on one another; on paper the last is seen.
local function stage_plot(div, src)
  local function file(step) return (src:gsub('%.svg$', '-' .. step .. '.svg')) end
  local steps, step = pandoc.List { picture(div, file(0)) }, 1
  while common.read(common.build .. '/figures/' .. file(step)) do
    steps:insert(pandoc.Div({ picture(div, file(step)) }, pandoc.Attr('', { 'fragment' })))
    step = step + 1
  end
  return pandoc.Div(steps, pandoc.Attr('', { 'stage-plot' }))
end

-- A diagram has no frame and no white ground: it is light or dark as the page is.
local function is_diagram(svg) return svg:find('class="diagram"', 1, true) end

-- A picture of quest/book/pictures is a part of its slide: it has the font and the colours of the deck, and its steps are fragments.
local function is_wall(svg) return svg:find('class="wall"', 1, true) end

local function wall(div, src, svg)
  common.depend(common.build .. '/figures/' .. src)
  if common.form ~= 'slides' then common.fail(src, 'a picture of the wall is for slides: %s', src) end
  local alt = common.escape(div.attributes.alt or words_of(div.content[1].content))
  return common.raw((svg:gsub('role="img"', function() return ('role="img" aria-label="%s"'):format(alt) end, 1)))
end

-- Whose run a figure shows stands in its footer (figures/style.gp).
local function run_label(svg)
  local here, reference = svg:find('>measured here, ', 1, true), svg:find('>reference machine, ', 1, true)
  return numbers.run_label({ here = here, reference = reference }, true) or pandoc.Plain {}
end

-- From a figure of results to the machine that they were measured on; nothing where the book has no such page.
local function to_the_machine(svg)
  local _, by_label = common.labels()
  local row = by_label['sec:this-edition']
  local measured = svg:find('>measured here, ', 1, true) or svg:find('>reference machine, ', 1, true)
  if not row or not measured or common.form == 'slides' then return pandoc.List {} end
  local address = row.slug .. '.html#' .. row.id
  return pandoc.List { pandoc.Space(), pandoc.Link('Which machine?', address, '', pandoc.Attr('', { 'ref', 'machine' })) }
end

local function draw(div)
  local src = div.attributes.src
  if src:find('/', 1, true) then
    return common.fail(src, 'a figure is a file of %s/figures, named without a folder: %s', common.build, src) or {}
  end
  local id = div.identifier ~= '' and (' id="%s"'):format(common.html_id(div.identifier)) or ''
  local svg = common.read(common.build .. '/figures/' .. src) or ''
  if is_diagram(svg) then div.classes:insert('diagram') end
  local caption, number = div.content[1].content, common.caption_number(div.identifier)
  local own = common.form ~= 'slides' and svg:find('>measured here, ', 1, true)
  if own and numbers.is_contradicted(src:gsub('%.svg$', '')) then
    caption = pandoc.List { pandoc.Emph 'On the reference run:', pandoc.Space() } .. caption
  end
  if number then caption = pandoc.List { pandoc.Span(number, pandoc.Attr('', { 'number' })), pandoc.Space() } .. caption end
  return {
    common.raw(('<figure class="%s"%s>'):format(table.concat(div.classes, ' '), id)),
    run_label(svg),
    is_wall(svg) and wall(div, src, svg) or src:find('^stage%-') and stage_plot(div, src) or picture(div, src, svg),
    common.raw('<figcaption>'),
    pandoc.Plain(caption .. to_the_machine(svg)),
    common.raw('</figcaption>\n</figure>'),
  }
end

function figures.draw(doc) return doc:walk { Div = common.by_class { figure = draw } } end

return figures
