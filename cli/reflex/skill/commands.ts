import type { Command } from 'commander'
import type { z } from 'zod'
import { list, setState, showBulletin, skillColumns } from '../../../src/contract/operations/skills.ts'
import type { registeredSkill } from '../../../src/contract/skill.ts'
import { addOperation } from '../operation.ts'
import { requestOf } from '../ask.ts'
import { handler, type Session } from '../session.ts'
import { openStandalone } from '../standalone-file.ts'
import { written } from '../table.ts'
import { jsonObject } from '../values.ts'
import { addSkillTests } from './test.ts'

export function addSkill(program: Command): void {
  const skill = program.command('skill').description('Register, test, activate and propose skills')
  addOperation(skill, list, fromFile).option('--file <path>', 'the skills in the file of a standalone process')
  skill
    .command('push <files...>')
    .description('Register manifests (JSON) as candidates')
    .option('--any-tools', 'accept tools that no agent of the deployment has')
    .action(handler(push))
  addSkillTests(skill)
  addOperation(skill, setState)
}

async function fromFile({ print }: Session, { file }: { file?: string }): Promise<boolean> {
  if (file === undefined) return false
  const { skills } = await openStandalone(file)
  const items = skills.all().map(({ manifest, state }) => ({ ...manifest, state }))
  print.page({ items, next_cursor: null }, skillColumns, 'The file holds no skills.')
  return true
}

async function push({ api, print, signal }: Session, files: string[], { anyTools }: { anyTools?: true }): Promise<void> {
  for (const file of files) {
    const body = jsonObject(`@${file}`, file)
    const { address } = requestOf({ at: 'post /v1/skills' }, { fields: { tools: anyTools ? 'any' : undefined } })
    const skill = await api().json<z.infer<typeof registeredSkill>>(address, { method: 'POST', body, signal })
    print.item(skill, () => `${written(skill.id)}@${written(skill.version)} is ${skill.state}.`)
  }
}

export function addBulletin(program: Command): void {
  addOperation(program.command('bulletin').description('The skills that a model would be shown'), showBulletin)
}
