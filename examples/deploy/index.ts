// A deployment from a chat, end to end: a model proposes skills, the gate decides on each, and
// plans call a cloud over HTTP. The Worker has no code for it.
//
//   npm run example:deploy
//
// It starts the real local server, a cloud in memory, and a script that acts as the model. With
// REFLEX_MODEL set (and OPENAI_COMPATIBLE_BASE_URL and OPENAI_COMPATIBLE_API_KEY if needed) it
// calls a language model instead. The exit code is 1 if the log contradicts a claim of the example.

import { randomUUID } from 'node:crypto'
import { connect } from '../../cli/lib/api.ts'
import { tellFailure } from '../../cli/lib/cli-error.ts'
import { interruption, unlessAborted } from '../../cli/lib/interruption.ts'
import { startServer } from '../../cli/lib/local-server.ts'
import { painter } from '../../cli/lib/paint.ts'
import { temporaryFolder } from '../../cli/lib/temporary-folder.ts'
import { harmless } from '../../cli/lib/text.ts'
import { startCloud } from './cloud.ts'
import type { Step } from './eight-steps.ts'
import { tellLearning } from './learning.ts'
import { startScriptedModel } from './model.ts'
import { secretVars } from './set-up.ts'
import { tellRefusals, tellStory } from './story.ts'

const { signal, exitCode } = interruption()
const paint = painter(process.stdout)

async function main(): Promise<number> {
  const folder = temporaryFolder('reflex-deploy-')
  const key = `deploy-${randomUUID().replaceAll('-', '')}`
  const cloud = await startCloud(randomUUID())
  const model = await modelOf(process.env)
  console.log(paint('yellow', model.note))
  const vars = { REFLEX_ADMIN_KEY: key, ...secretVars(cloud), ...model.vars }
  const starting = startServer({ persist_to: folder.path, vars, signal })
  try {
    const server = await unlessAborted(signal, starting)
    const api = connect(server.url, key)
    const steps = await unlessAborted(signal, tellStory(api, cloud))
    steps.forEach((step, index) => show(step, `${index + 1}.`))
    const refusals = await unlessAborted(signal, tellRefusals(api, cloud))
    for (const step of refusals) show(step, '·')
    const learned = model.is_scripted ? await unlessAborted(signal, tellLearning(api, cloud)) : []
    for (const step of learned) show(step, '+')
    const broken = [...steps, ...refusals, ...learned].filter(({ holds }) => !holds).length
    console.log(broken === 0 ? paint('green', 'All of it is in the log.') : paint('red', `${broken} of these the log does not show.`))
    return broken === 0 ? 0 : 1
  } finally {
    await (await starting.catch(() => null))?.stop()
    model.stop()
    cloud.stop()
    folder.remove()
  }
}

function show({ title, shown, holds }: Step, mark: string): void {
  console.log(`${paint('bold', `${mark} ${title}`)} ${holds ? paint('green', 'ok') : paint('red', 'NOT SHOWN')}`)
  for (const line of shown) console.log(`     ${harmless(line)}`)
}

const NOTE = 'No model is asked: a script plays its part, at the price of gpt-4.1. Set REFLEX_MODEL to ask one.'

type Played = { note: string; is_scripted: boolean; vars: Record<string, string>; stop: () => void }

async function modelOf(env: NodeJS.ProcessEnv): Promise<Played> {
  if (!env['REFLEX_MODEL']) return { note: NOTE, is_scripted: true, ...(await startScriptedModel()) }
  const names = ['REFLEX_MODEL', 'OPENAI_COMPATIBLE_BASE_URL', 'OPENAI_COMPATIBLE_API_KEY']
  const vars = Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
  return { note: `The model ${env['REFLEX_MODEL']} is asked.`, is_scripted: false, vars, stop: () => {} }
}

try {
  process.exitCode = await main()
} catch (error) {
  process.exitCode = signal.aborted ? exitCode() : tellFailure('The example failed:', error)
}
// Connections that the server was killed under may keep a handle for a while.
process.exit()
