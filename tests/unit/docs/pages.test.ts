import { existsSync, readFileSync } from 'node:fs'
import type { Command } from 'commander'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { llmsText } from '../../../cli/docs/llms-text.ts'
import { reflexProgram } from '../../../cli/reflex/program.ts'
import { banned, flawIn, pronouns } from '../../../cli/english/phrases.ts'
import { anchorOf } from '../../../dashboard/documentation/render.ts'
import { blocksOf, pages } from '../../support/documented.ts'

const all = [...(await pages()), 'AGENTS.md', 'CONTRIBUTING.md']
const docs = all.filter((page) => page.startsWith('docs/'))
const withoutCode = (page: string): string => readFileSync(page, 'utf8').replaceAll(/^ *```[^]*?^ *```$/gm, '')

/** Files of a user's project: those that `init` writes, and the README's own. */
const OF_A_PROJECT = /^(?:src\/agents\/|src\/(?:page\.ts|try\.json)$|tests\/hello\.test\.ts$)/

const anchorsIn = (page: string): string[] => Array.from(withoutCode(page).matchAll(/^#+ (.*)$/gm), ([, heading = '']) => anchorOf(heading))

/** True if these words begin with a command of the program, or are the noun of some. */
function isCommand([name, ...rest]: readonly string[], of: Command = reflexProgram()): boolean {
  const found = of.commands.find((command) => command.name() === name)
  return found === undefined ? name === undefined || of.commands.length === 0 : isCommand(rest, found)
}

/** The names of the commands that help shows, with their nouns. */
const namesOf = (of: Command): string[] =>
  of
    .createHelp()
    .visibleCommands(of)
    .filter((command) => command.name() !== 'help')
    .flatMap((command) => (command.commands.length === 0 ? [command.name()] : namesOf(command).map((name) => `${command.name()} ${name}`)))

describe('the documentation', () => {
  test.each(all)('%s has no broken link', (page) => {
    const targets = Array.from(
      withoutCode(page).matchAll(/\]\(([^)\s]+)\)|src(?:set)?="([^"]+)"/g),
      ([, link, picture]) => link ?? picture ?? '',
    )
    const broken = targets
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [file = '', anchor] = target.split('#')
        const at = file === '' ? page : path.join(path.dirname(page), file)
        return !existsSync(at) || (anchor !== undefined && !anchorsIn(at).includes(anchor))
      })
    expect(broken).toEqual([])
  })

  test.each(all)('%s names no file of this repository that does not exist', (page) => {
    const named = withoutCode(page).matchAll(/`((?:src|cli|client|dashboard|testing|tests|examples|bench|migrations)\/[\w./-]+)`/g)
    const missing = Array.from(named, ([, file = '']) => file).filter((file) => !existsSync(file) && !OF_A_PROJECT.test(file))
    expect(missing).toEqual([])
  })

  test.each(all)('%s says what each variable of its commands is', async (page) => {
    const shown = readFileSync(page, 'utf8').replaceAll(/<!--[^]*?-->/g, '')
    const commands = (await blocksOf(page)).filter(({ language }) => language === 'sh').map(({ code }) => code)
    const used = commands.flatMap((code) => Array.from(code.matchAll(/\$\{?([A-Z][A-Z_]*)\b/g), ([, name = '']) => name))
    // `npm run dev` prints URL and KEY, and the README says so for all pages.
    const given = new Set(['URL', 'KEY', 'PWD', 'HOME'])
    const unknown = used.filter(
      (name) => !given.has(name) && !new RegExp(`\\b${name}=|# ${name}: |\\b${name}[:,] |\`${name}\``).test(shown),
    )
    expect(unknown).toEqual([])
  })

  // The table of cli.md has its commands without the name of the program.
  test.each(all.filter((page) => page !== 'docs/cli.md'))('%s names no command of `reflex` that does not exist', (page) => {
    const named = withoutCode(page).matchAll(/`(?:npx |npm run )?reflex (?:-- )?([a-z][^`\n]*)`/g)
    expect(Array.from(named, ([, command = '']) => command).filter((command) => !isCommand(command.split(/\s+/)))).toEqual([])
  })

  test('cli.md has each command of `reflex`', () => {
    const text = readFileSync('docs/cli.md', 'utf8')
    const shown = Array.from(text.matchAll(/`([^`\n]+)`/g), ([, code = '']) => `${code} `)
    expect(namesOf(reflexProgram()).filter((name) => !shown.some((code) => code.startsWith(`${name} `)))).toEqual([])
  })

  test.each(all)('%s has no row outside a table', (page) => {
    const tables = withoutCode(page)
      .split(/\n(?!\|)/)
      .map((part) => part.split('\n').filter((line) => line.startsWith('|')))
    const cut = tables.filter(([head, line]) => head !== undefined && !/^\|(?: -+:? \|)+$/.test(line ?? ''))
    expect(cut).toEqual([])
    expect(tables.flat().filter((row) => !row.endsWith('|'))).toEqual([])
  })

  test.each(all)('%s calls no function in its commands before it defines it', async (page) => {
    const code = (await blocksOf(page)).map((block) => block.code).join('')
    const [before = ''] = code.split('auth() {')
    expect(before).not.toMatch(/\bauth [$"-]/)
  })

  test.each(all)('%s has no cell of a table with more than 60 words: a heading and paragraphs read better', (page) => {
    const cells = Array.from(withoutCode(page).matchAll(/^\|(.*)\|$/gm), ([, row = '']) => row.split(/(?<!\\)\|/)).flat()
    const long = cells.filter((cell) => cell.trim().split(/\s+/).length > 60)
    expect(long).toEqual([])
  })

  // Texts of the API are on the wire: the pages that quote them keep their wording.
  test.each(all.filter((page) => !/\/(?:settings|log|manifest_schema|stats)\.md$/.test(page)))(
    '%s has no wording that readers stumble over',
    (page) => {
      const flaws = withoutCode(page)
        .replaceAll(/\s+/g, ' ')
        .split(/(?<=[.:;|]) /)
        .flatMap((sentence) => flawIn(sentence, [...banned, ...pronouns]) ?? [])
      expect(flaws).toEqual([])
    },
  )

  test('the README fits on 150 lines and leads to each page', () => {
    const readme = readFileSync('README.md', 'utf8')
    expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(150)
    const index = readFileSync('docs/decisions/README.md', 'utf8')
    const isLinked = (page: string): boolean => readme.includes(`(${page})`) || index.includes(`(${path.relative('docs/decisions', page)})`)
    expect(docs.filter((page) => !isLinked(page))).toEqual([])
  })

  test('llms.txt is what the pages say', () => {
    expect(readFileSync('llms.txt', 'utf8'), 'run: npm run docs:reference').toBe(llmsText(docs))
  })
})
