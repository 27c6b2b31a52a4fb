import { describe, expect, test } from 'vitest'
import { idOf, toolName } from '../../../src/features/protocols/http/mcp/tool-name.ts'
import { skillId } from '../../../src/contract/skill-names.ts'

/** Every id of at most six of these characters, and the same behind what is too long for a name. */
const shortIds = [1, 2, 3, 4, 5, 6].flatMap((length) => textsOf(length)).filter((text) => skillId.safeParse(text).success)
const ids = [...shortIds, ...shortIds.map((id) => `${'long_'.repeat(13)}.${id}`)]

function textsOf(length: number): string[] {
  return length === 0 ? [''] : textsOf(length - 1).flatMap((text) => ['a', '_', '.', '-'].map((character) => text + character))
}

describe('the name of a skill as a tool', () => {
  test.each([
    ['deploy.container.appservice', 'deploy__container__appservice'],
    ['docker_build-and_push', 'docker_build-and_push'],
  ])('of %s is %s, and back', async (id, name) => {
    expect(await toolName(id)).toBe(name)
    expect(idOf(name)).toEqual({ id })
  })

  test.each(['a__b', 'a._b', 'a_.b', `a.${'b'.repeat(70)}`])('of %s is known by its hash', async (id) => {
    const name = await toolName(id)
    expect(name).toMatch(/___[0-9a-f]{24}$/)
    expect(idOf(name)).toBe('hashed')
  })

  test('is one that clients take, and never that of another skill', async () => {
    const names = await Promise.all(ids.map(toolName))
    expect(names.filter((name) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name))).toEqual([])
    expect(new Set(names).size).toBe(ids.length)
    const back = names.map((name, index) => [idOf(name), ids[index]] as const)
    expect(back.filter(([found, id]) => typeof found === 'object' && found.id !== id)).toEqual([])
    expect(back.map(([found]) => found)).not.toContain('none')
  })

  test.each(['', 'no tool', '9', '_a', 'a'.repeat(65), 'a@1.0.0', 'ä'])('is not «%s»', (name) => {
    expect(idOf(name)).toBe('none')
  })
})
