import { readdir, readFile } from 'node:fs/promises'

/** A fenced block of a page, with what the HTML comment right above it says. */
export type Block = {
  page: string
  line: number
  language: string
  code: string
  /** `<!-- first: COMMANDS -->`: commands that make what the block speaks of. */
  first: string
  /** `<!-- not run: REASON -->`. */
  skipped: string | null
  /** `<!-- schema: NAME -->`: what the block is an example of. */
  schema: string | null
}

/** The READMEs and every page of docs/. */
export async function pages(): Promise<string[]> {
  const names = await readdir('docs', { recursive: true })
  return [
    'README.md',
    'examples/README.md',
    ...names
      .filter((name) => name.endsWith('.md'))
      .toSorted()
      .map((name) => `docs/${name}`),
  ]
}

export async function blocksOf(page: string): Promise<Block[]> {
  const text = await readFile(page, 'utf8')
  const found = text.matchAll(/(?:^<!-- (first|not run|schema):\s((?:(?!-->)[^])*?)\s?-->\n\s*)?^( *)```(\w+)\n([^]*?)^ *```$/gm)
  return Array.from(found, ({ 0: whole, 1: directive, 2: said = '', 3: indent = '', 4: language = '', 5: code = '', index }) => ({
    page,
    line: text.slice(0, index + whole.indexOf('```')).split('\n').length,
    language,
    code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    first: directive === 'first' ? said : '',
    skipped: directive === 'not run' ? said : null,
    schema: directive === 'schema' ? said : null,
  }))
}

export async function documented(language: string): Promise<Block[]> {
  const all = await Promise.all((await pages()).map(blocksOf))
  return all.flat().filter((block) => block.language === language)
}
