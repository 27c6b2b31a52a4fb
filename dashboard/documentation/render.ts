import { escapeHtml } from '../../src/base/html.ts'
import path from 'node:path'
import { Marked, type Tokens } from 'marked'

/** The Markdown of a page, by its path below docs/, such as `decisions/one-alarm.md`. */
type Sources = ReadonlyMap<string, string>

const INDEX = 'index.md'

/** As GitHub names the anchor of a heading. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')

/**
 * The files of the site below /docs, by their paths: a page of HTML for each page of Markdown, and
 * `pages.json`, their names, which the search reads. `readme`: the README, whose table
 * "Where to read on" groups the pages, and whose first part is the start page.
 */
export function documentation(readme: string, sources: Sources): Map<string, string> {
  const all = new Map([[INDEX, startPage(readme)], ...sources])
  const titles = new Map([...all].map(([page, text]) => [page, /^# (.*)$/m.exec(text)?.[1] ?? page] as const))
  const groups = groupsOf(readme)
  const files = new Map<string, string>()
  for (const [page, text] of all) {
    const body = htmlOf(text.replaceAll(/<!--[^]*?-->\n?/g, ''), page)
    const navigation = menu(groups, page, titles)
    files.set(fileOf(page), frame({ title: titles.get(page) ?? page, body, navigation, root: '../'.repeat(page.split('/').length - 1) }))
  }
  files.set('pages.json', JSON.stringify([...sources.keys()].map((page) => linkTo(page, INDEX).replace(/\/$/, ''))))
  return files
}

/** The README's introduction, with the links of a page of docs/. */
function startPage(readme: string): string {
  const [introduction = ''] = readme.split('<!--')
  const [, table = ''] = readme.split('## Where to read on')
  const [reading = ''] = table.split('\n## ')
  const text = `${introduction.replace(/<picture>[^]*?<\/picture>/, '')}\n## Where to read on${reading}`
  return text.replaceAll('](docs/', '](')
}

type Group = { name: string; pages: readonly string[] }

function groupsOf(readme: string): Group[] {
  const rows = readme.matchAll(/^\| ([^|]+) \| (\[.*\]\(docs\/.*\)) \|$/gm)
  return Array.from(rows, ([, name = '', links = '']) => ({
    name: name.trim(),
    pages: Array.from(links.matchAll(/\(docs\/([^)]+)\)/g), ([, page = '']) => page),
  }))
}

function menu(groups: readonly Group[], current: string, titles: ReadonlyMap<string, string>): string {
  const link = (page: string): string => {
    const marked = page === current ? ' aria-current="page"' : ''
    return `<li><a href="${linkTo(page, current)}"${marked}>${escapeHtml(titles.get(page) ?? page)}</a></li>`
  }
  const parts = groups.map(({ name, pages }) => {
    const open = pages.includes(current) || current === INDEX ? ' open' : ''
    return `<details${open}><summary>${escapeHtml(name)}</summary><ul>${pages.map(link).join('')}</ul></details>`
  })
  return parts.join('')
}

/** The name of the file that `/docs/NAME` serves. */
const fileOf = (page: string): string => page.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.md$/, '.html')

/** A link from one page to another one, as the address bar shows pages: without an ending. */
function linkTo(page: string, from: string): string {
  const at = fileOf(page)
    .replace(/(^|\/)index\.html$/, '$1')
    .replace(/\.html$/, '')
  const relative = path.posix.relative(path.posix.dirname(from), at)
  return relative === '' ? './' : at.endsWith('/') ? `${relative}/` : relative
}

function htmlOf(text: string, page: string): string {
  const link = ({ href, text: label }: Tokens.Link, inner: string): string => {
    if (/^[a-z]+:/.test(href)) return `<a href="${escapeHtml(href)}" rel="noreferrer">${inner}</a>`
    const [file = '', anchor] = href.split('#')
    const at = anchor === undefined ? '' : `#${anchor}`
    if (file === '') return `<a href="${at}">${inner}</a>`
    const target = path.posix.join(path.posix.dirname(page), file)
    // A file of the repository is not part of the site.
    if (target.startsWith('..') || !target.endsWith('.md')) return label.includes('`') ? inner : `<code>${inner}</code>`
    return `<a href="${linkTo(target, page)}${at}">${inner}</a>`
  }
  const marked = new Marked({
    renderer: {
      link(token) {
        return link(token, this.parser.parseInline(token.tokens))
      },
      heading({ depth, text: heading, tokens }) {
        const anchor = anchorOf(heading)
        const inner = this.parser.parseInline(tokens)
        if (depth === 1) return `<h1 id="${anchor}">${inner}</h1>\n`
        return `<h${depth} id="${anchor}">${inner} <a class="anchor" href="#${anchor}" aria-label="Link to this heading">#</a></h${depth}>\n`
      },
      // The package has no pictures: what they show is in their text.
      image: ({ text: shown }) => `<em>${escapeHtml(shown)}</em>`,
    },
  })
  return marked.parse(text, { async: false }).replaceAll('<table>', '<div class="wide"><table>').replaceAll('</table>', '</table></div>')
}

type Frame = { title: string; body: string; navigation: string; root: string }

const frame = ({ title, body, navigation, root }: Frame): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · Reflex</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/style.css">
<script type="module" src="/docs/search.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the page</a>
<header>
<a href="${root === '' ? './' : root}">Reflex documentation</a>
<label>Search <input id="search" type="search" autocomplete="off" aria-controls="results"></label>
<nav aria-label="Site"><a href="/v1/docs">API reference</a> <a href="/">Dashboard</a></nav>
</header>
<div id="results" role="status" hidden></div>
<div class="columns">
<nav aria-label="Pages">${navigation}</nav>
<main id="content">
${body}</main>
</div>
</body>
</html>
`
