import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { addChannel, CHANNELS } from '../../../cli/reflex/project/add-channel.ts'
import { temporaryFolder } from '../../../cli/lib/temporary-folder.ts'

/** A project whose deployment has this source, in a folder that leaves with the test. */
function project(source: string) {
  const folder = temporaryFolder('reflex-channel-')
  mkdirSync(path.join(folder.path, 'src'))
  writeFileSync(path.join(folder.path, 'src/index.ts'), source)
  return { folder, read: (name: string) => readFileSync(path.join(folder.path, name), 'utf8') }
}

test.each(CHANNELS)('adds the hook and the agent of %s once, and lists the agent first', (name) => {
  const { folder, read } = project('const worker = reflex({ agents: [hello] })\n')
  expect(addChannel(folder.path, name)).toContain(`/v1/hooks/${name}`)
  expect(JSON.parse(read(`src/channels/${name}.json`))).toMatchObject({ scheme: name, scope: expect.stringMatching(`^${name}/`) })
  expect(read(`src/agents/${name}.ts`)).toContain(`scopes: ['${name}/*']`)
  expect(read('src/index.ts')).toBe(`import { ${name} } from './agents/${name}.ts'\nconst worker = reflex({ agents: [${name}, hello] })\n`)
  expect(() => addChannel(folder.path, name)).toThrow(`src/agents/${name}.ts is there already.`)
  folder.remove()
})

test('says what to add where the list of agents is not found', () => {
  const { folder, read } = project('export {}\n')
  expect(addChannel(folder.path, 'slack')).toContain('Add `slack` of ./agents/slack.ts to the agents in src/index.ts.')
  expect(read('src/index.ts')).toBe('export {}\n')
  folder.remove()
})
