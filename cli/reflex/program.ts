import { Command } from 'commander'
import { timers } from '../../src/contract/operations/timers.ts'
import { version } from '../lib/package.ts'
import { addKeys } from './access/keys.ts'
import { addLogin } from './access/login.ts'
import { addDoctor } from './doctor/command.ts'
import { addCompletion } from './completion.ts'
import { addEvents } from './events/commands.ts'
import { addApprovals } from './operations/approvals.ts'
import { addDeadLetters } from './operations/dead-letters.ts'
import { addLearn } from './learn/commands.ts'
import { addAdd } from './project/add-channel.ts'
import { addDeploy } from './project/deploy.ts'
import { addDev } from './project/dev.ts'
import { addInit } from './project/init.ts'
import { addPrepare } from './project/prepare.ts'
import { addTest } from './project/test.ts'
import { addReceipts } from './receipts/commands.ts'
import { addPush, addReflex, addSwitches } from './reflex/commands.ts'
import { addScope } from './scope/commands.ts'
import { addBulletin, addSkill } from './skill/commands.ts'
import { addResource } from './operation.ts'
import { addStats } from './stats.ts'
import { addTrace } from './trace/commands.ts'
import { addReplay } from './trace/replay.ts'
import { existsSync, readdirSync } from 'node:fs'
import { extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Resource } from '../../src/contract/operation.ts'

// The list of the features names what runs in a Worker, which Node cannot import.
const folder = join(import.meta.dirname, '../../src/features')
const files = readdirSync(folder)
  .map((name) => join(folder, name, `resources${extname(import.meta.filename)}`))
  .filter((file) => existsSync(file))
const declared = await Promise.all(files.map((file) => import(pathToFileURL(file).href) as Promise<{ resources: readonly Resource[] }>))

/** The resources in the files `resources.ts` of the features, in the order of their names. */
const resources: readonly Resource[] = declared.flatMap((module) => module.resources)

const EXAMPLES = `
Examples:
  reflex init my-agents
  reflex login --url https://reflex.example.com
  reflex events send orders.jsonl --scope shop/berlin
  reflex scope tail shop/berlin
  reflex doctor

The server and key are those of --url and --key, of REFLEX_URL and REFLEX_KEY, or of a profile
that reflex login has written. Prefer the latter two: others on this machine can see arguments.
Exit codes: 0 done, 1 failed or a check failed, 2 wrong usage, 130 stopped by Ctrl-C.`

/** The whole command line. */
export function reflexProgram(): Command {
  const program = new Command('reflex')
  program
    .description(
      'Creates, runs and deploys projects of Reflex, and works with its servers: send events, watch scopes, manage reflexes and skills.',
    )
    .version(version)
    .option('--url <url>', 'the server; REFLEX_URL by default')
    .option('--key <key>', 'the key; REFLEX_KEY by default')
    .option('--profile <name>', 'a profile that reflex login has written; REFLEX_PROFILE by default')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .showHelpAfterError('Add --help for the usage.')
    .configureHelp({ showGlobalOptions: true })
    .helpCommand(false)
    .exitOverride()
  const nouns: ((of: Command) => void)[] = [
    addEvents,
    addScope,
    addTrace,
    (of) => addResource(of, timers),
    addDeadLetters,
    addReflex,
    addSkill,
    addLearn,
    addBulletin,
    addApprovals,
    addKeys,
    ...resources.map((resource) => (of: Command) => addResource(of, resource)),
  ]
  for (const add of [
    addInit,
    addAdd,
    addDev,
    addTest,
    addDeploy,
    addPrepare,
    ...nouns,
    addReceipts,
    addPush,
    addSwitches,
    addReplay,
    addStats,
    addLogin,
    addDoctor,
    addCompletion,
  ])
    add(program)
  for (const noun of program.commands) noun.helpCommand(false)
  return program
}
