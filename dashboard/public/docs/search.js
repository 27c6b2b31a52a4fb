// The search of the documentation. It reads the pages themselves when somebody first searches.
const MOST = 20
const SHOWN = 160
const input = document.getElementById('search')
const results = document.getElementById('results')
let sections

async function load() {
  const response = await fetch('/docs/pages.json')
  if (!response.ok) throw new Error(`The search could not be loaded: status ${response.status}. Try it again.`)
  const pages = await response.json()
  return (await Promise.all(pages.map(async (page) => sectionsOf(page, await read(`/docs/${page}`))))).flat()
}

/** A page as a document. The policy forbids scripts to parse HTML, and a request may. */
const read = (address) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('GET', address)
    request.responseType = 'document'
    request.addEventListener('load', () => resolve(request.response))
    request.addEventListener('error', () => reject(new Error(`The search could not read ${address}. Try it again.`)))
    request.send()
  })

/** The parts of a page, each under one heading. */
function sectionsOf(page, read) {
  const found = []
  const title = read.querySelector('h1')?.textContent ?? page
  for (const element of read.querySelectorAll('#content > *')) {
    const said = element.textContent.replaceAll(/\s+/g, ' ').trim()
    if (/^H\d$/.test(element.tagName)) found.push({ page, title, heading: said.replace(/ #$/, ''), anchor: element.id, text: '' })
    else if (found.length > 0) found.at(-1).text += ` ${said}`
  }
  return found
}

/** Sections that have all words, those with a word in their heading or title first. */
function find(all, words) {
  const scored = all.flatMap((section) => {
    const heading = `${section.title} ${section.heading}`.toLowerCase()
    const text = section.text.toLowerCase()
    if (!words.every((word) => heading.includes(word) || text.includes(word))) return []
    return [{ section, score: words.filter((word) => heading.includes(word)).length }]
  })
  return scored
    .sort((one, other) => other.score - one.score)
    .slice(0, MOST)
    .map(({ section }) => section)
}

function entry({ page, title, heading, anchor, text }, words) {
  const link = document.createElement('a')
  link.href = `/docs/${page}#${anchor}`
  link.textContent = title === heading ? title : `${title}: ${heading}`
  const at = Math.max(0, text.toLowerCase().indexOf(words[0]) - SHOWN / 3)
  const excerpt = document.createElement('p')
  excerpt.textContent = `${at > 0 ? '…' : ''}${text.slice(at, at + SHOWN)}${text.length > at + SHOWN ? '…' : ''}`
  const item = document.createElement('li')
  item.append(link, excerpt)
  return item
}

async function search() {
  const words = input.value
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  results.hidden = words.length === 0
  if (words.length === 0) return
  const asked = input.value
  try {
    sections ??= load()
    const found = find(await sections, words)
    if (input.value !== asked) return
    const list = document.createElement('ol')
    list.append(...found.map((section) => entry(section, words)))
    results.replaceChildren(found.length > 0 ? list : `No page has "${asked}".`)
  } catch (error) {
    sections = undefined
    results.replaceChildren(error.message)
  }
}

input.addEventListener('input', () => void search())
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && event.target === input) {
    input.value = ''
    results.hidden = true
  }
  if (event.key !== '/' || event.target === input || event.ctrlKey || event.metaKey || event.altKey) return
  event.preventDefault()
  input.focus()
})
