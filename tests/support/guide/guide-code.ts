/**
 * The first TypeScript block after a heading of a guide, with imports as from tests/support/guide.
 */
export function guideCode(guide: string, heading: string): string {
  const behind = guide.slice(guide.indexOf(`${heading}\n`))
  const [, code = ''] = /^```ts\n([^]*?)^```$/m.exec(behind) ?? []
  return code.replaceAll("'../", "'../../../src/").replaceAll("'./", "'../../../src/agents/")
}
