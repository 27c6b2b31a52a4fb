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

const HOOKS = CHANNELS.filter((name) => name !== 'email')
test.each(HOOKS)('adds the hook and the agent of %s once, and lists the agent first', (name) => {
  const { folder, read } = project('const worker = reflex({ agents: [hello] })\n')
  const said = addChannel(folder.path, name)
  expect(said).toContain(`/v1/hooks/${name}`)
  expect(said.match(new RegExp(`REFLEX_(?:HOOK|TOOL)_${name.toUpperCase()}`, 'g'))).toHaveLength(2)
  expect(JSON.parse(read(`src/channels/${name}.json`))).toMatchObject({ scheme: name, scope: expect.stringMatching(`^${name}/`) })
  expect(read(`src/agents/${name}.ts`)).toContain(`scopes: ['${name}/*']`)
  expect(read('src/index.ts')).toBe(`import { ${name} } from './agents/${name}.ts'\nconst worker = reflex({ agents: [${name}, hello] })\n`)
  expect(() => addChannel(folder.path, name)).toThrow(`src/agents/${name}.ts is there already.`)
  folder.remove()
})

const INDEX = `import { reflex } from 'reflex-agents'
import { hello } from './agents/hello.ts'

const worker = reflex({ agents: [hello] })

export default {
  ...worker.handlers,
} satisfies typeof worker.handlers
`

test('adds e-mail with what reads mails, the handler that takes them and the binding that sends', () => {
  const { folder, read } = project(INDEX)
  const manifest = { name: 'mine', dependencies: { ai: '7.0.0' } }
  writeFileSync(path.join(folder.path, 'package.json'), JSON.stringify(manifest))
  writeFileSync(path.join(folder.path, 'wrangler.toml'), 'name = "mine"\n')
  const said = addChannel(folder.path, 'email')
  expect(said.match(/REFLEX_HOOK_EMAIL/g)).toHaveLength(1)
  for (const hook of ['email', 'email-unverified']) {
    expect(said).toContain(`/v1/hooks/${hook}" -d @src/channels/${hook}.json`)
    expect(JSON.parse(read(`src/channels/${hook}.json`))).toMatchObject({ scheme: 'standard', scope: expect.stringMatching(`^${hook}/`) })
  }
  expect(JSON.parse(read('package.json'))).toEqual({ ...manifest, dependencies: { ai: '7.0.0', 'postal-mime': expect.any(String) } })
  expect(read('wrangler.toml')).toContain('[[send_email]]\nname = "EMAIL"\n')
  expect(read('src/index.ts')).toContain("import { mailHandler, reflex } from 'reflex-agents'")
  expect(read('src/index.ts')).toContain('agents: [email, hello]')
  expect(read('src/index.ts')).toContain('  ...worker.handlers,\n  email: mailHandler({')
  expect(() => addChannel(folder.path, 'email')).toThrow('src/agents/email.ts is there already.')
  folder.remove()
})

test('says which handler to add where those of the deployment are not found', () => {
  const { folder, read } = project('export {}\n')
  writeFileSync(path.join(folder.path, 'package.json'), '{}')
  const said = addChannel(folder.path, 'email')
  expect(said).toContain('Add `email: mailHandler({')
  expect(said).toContain('Give wrangler.toml the binding EMAIL')
  expect(read('src/index.ts')).toBe('export {}\n')
  folder.remove()
})

test('says what to add where the list of agents is not found', () => {
  const { folder, read } = project('export {}\n')
  expect(addChannel(folder.path, 'slack')).toContain('Add `slack` of ./agents/slack.ts to the agents in src/index.ts.')
  expect(read('src/index.ts')).toBe('export {}\n')
  folder.remove()
})
