import { readFileSync } from 'node:fs'

/** Generates llms.txt: each page of docs/ with its first sentence, for programs that read docs. */
export function llmsText(pages: readonly string[]): string {
  return `${intro}\n${pages.map(line).join('\n')}\n`
}

const intro = `# Reflex

> Real-time AI agents as control systems on Cloudflare Workers: events come in, reflexes act at once, a model thinks, a gate decides, and
> what is decided again and again is learned, proved and acts by itself.

The package is \`reflex-agents\`. A running deployment describes its API at /v1/openapi.json, and answers questions over MCP at /v1/mcp/inspect.
AGENTS.md has the rules for programs that change a project.

## Docs
`

function line(page: string): string {
  const [heading = '', ...rest] = readFileSync(page, 'utf8').split('\n')
  const first = rest.join('\n').split('\n\n').map(plain).find(isProse) ?? ''
  const [sentence = ''] = /^.*?[.:](?=\s|$)/s.exec(first) ?? [first]
  return `- [${heading.replace(/^# /, '')}](${page}): ${sentence.replace(/:$/, '.')}`
}

const plain = (paragraph: string): string =>
  paragraph
    .replaceAll(/<!--[^]*?-->/g, '')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/\s+/g, ' ')
    .trim()

const isProse = (paragraph: string): boolean => /^[A-Z`*]/.test(paragraph) && !paragraph.startsWith('```')
