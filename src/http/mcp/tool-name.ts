import { skillId } from '../../skills/manifest/names.ts'
import { hashJson } from '../../base/json.ts'

/** What MCP clients take as a tool's name: letters, digits, _ and -, 64 at most. A skill's id has dots, and may be longer. */
const MOST = 64
const HASH = 24
const MARK = '___'

/**
 * The name under which a skill is a tool. `a.b_c` is `a__b_c`, which `idOf` turns back. An id that is too long, or has dots and underscores side by side, is
 * cut and named by its hash behind three underscores, which no other name holds.
 */
export async function toolName(id: string): Promise<string> {
  const plain = id.replaceAll('.', '__')
  if (plain.length <= MOST && !/[._]{2}/.test(id)) return plain
  const hash = await hashJson(id)
  return `${plain.slice(0, MOST - MARK.length - HASH)}${MARK}${hash.slice(0, HASH)}`
}

/** Whose name it is; `hashed` where only a look through the skills can tell. */
export function idOf(name: string): { id: string } | 'hashed' | 'none' {
  if (name.includes(MARK)) return 'hashed'
  const id = skillId.safeParse(name.replaceAll('__', '.'))
  return id.success && name.length <= MOST ? { id: id.data } : 'none'
}
