import { expect, test } from 'vitest'
import { compatOutcome } from '../../../../src/skills/gate/outcomes.ts'
import { deployManifest } from '../deploy-manifest.ts'

test('a skill is checked for each field of the place that it names, and for no other', () => {
  const manifest = deployManifest({ 'compat.env': ['staging', 'eu'] })
  const place = { env: ['staging', 'prod'], toolset: null, repo: 'github.com/acme/payments', project: 'acme' }
  const [env, toolset] = ['the skill is for staging or eu; this is staging and prod', 'the skill is for v6; this is not known']
  expect(compatOutcome(manifest, place)).toEqual({
    checks: [
      { check: 'compat.env', passed: false, detail: env },
      { check: 'compat.toolset', passed: false, detail: toolset },
      { check: 'compat.repo', passed: true, detail: 'the skill is for github.com/acme/payments; this is github.com/acme/payments' },
    ],
    needs: [
      { need: 'compat', field: 'env', message: `compat.env: ${env}` },
      { need: 'compat', field: 'toolset', message: `compat.toolset: ${toolset}` },
    ],
  })
})
