#!/usr/bin/env node
// `npm create reflex-agent DIR -- --template NAME` is `reflex init DIR --template NAME`.
import { createRequire } from 'node:module'
import path from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'

const folder = path.dirname(createRequire(import.meta.url).resolve('reflex-agents/package.json'))
process.argv.splice(2, 0, 'init')
await import(pathToFileURL(path.join(folder, 'dist/cli/reflex/bin.js')).href)
