/** The first block of TypeScript behind a heading of a guide, its imports as they are from tests/support/guide. */
export function guideCode(guide: string, heading: string): string {
  const behind = guide.slice(guide.indexOf(`${heading}\n`))
  const [, code = ''] = /^```ts\n([^]*?)^```$/m.exec(behind) ?? []
  return code.replaceAll("'../", "'../../../src/").replaceAll("'./", "'../../../src/agents/")
}
