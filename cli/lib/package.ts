import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname } from 'node:path'

const manifest = findPackageJSON(import.meta.url)
if (manifest === undefined) throw new Error('the package.json of reflex-agents is missing')

/** The folder of this package: the repository, or the installed package in a project. */
export const packageFolder = dirname(manifest)
export const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }
