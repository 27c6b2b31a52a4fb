import { skillId } from '../../../../contract/skill-names.ts'
import { hashJson } from '../../../../base/json.ts'

/** MCP clients accept names of at most 64 letters, digits, _ and -. Ids of skills have dots too. */
const MOST = 64
const HASH = 24
const MARK = '___'

/**
 * `a.b_c` becomes `a__b_c`, which `idOf` reverses. Other ids are truncated and get a hash after
 * three underscores.
 */
export async function toolName(id: string): Promise<string> {
  const plain = id.replaceAll('.', '__')
  if (plain.length <= MOST && !/[._]{2}/.test(id)) return plain
  const hash = await hashJson(id)
  return `${plain.slice(0, MOST - MARK.length - HASH)}${MARK}${hash.slice(0, HASH)}`
}

/** The skill of a tool name; `hashed` if only a search through the skills can find it. */
export function idOf(name: string): { id: string } | 'hashed' | 'none' {
  if (name.includes(MARK)) return 'hashed'
  const id = skillId.safeParse(name.replaceAll('__', '.'))
  return id.success && name.length <= MOST ? { id: id.data } : 'none'
}
