type ServerSentEvent = { id: string | null; event: string; data: string }

/**
 * Parses Reflex's server-sent events, whose lines end with a line feed. Feed it pieces of text; it
 * returns the complete events.
 */
export function sseParser(): (piece: string) => ServerSentEvent[] {
  let rest = ''
  return (piece) => {
    const blocks = (rest + piece).split('\n\n')
    rest = blocks.pop() ?? ''
    return blocks.flatMap((block) => parseBlock(block) ?? [])
  }
}

function parseBlock(block: string): ServerSentEvent | null {
  const fields = block.split('\n').flatMap((line) => {
    const [, name = '', value = ''] = /^([^:]+)(?:: ?(.*))?$/.exec(line) ?? []
    return name === '' ? [] : [{ name, value }]
  })
  const last = (name: string) => fields.findLast((field) => field.name === name)?.value
  const data = fields.flatMap(({ name, value }) => (name === 'data' ? [value] : []))
  if (data.length === 0) return null
  return { id: last('id') ?? null, event: last('event') ?? 'message', data: data.join('\n') }
}
