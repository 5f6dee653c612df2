// Whatever is wrong with a command, it ends with code 1, one clear line, and no file.

import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { readNpz, writeNpz } from 'aquila-xmc'
import { beforeAll, expect, it } from 'vitest'
import { workplace } from './cli-helpers.js'
import { cli, cliPath, problem, start } from './helpers.js'

// Links need a privilege there, and pipes are no files.
const windows = process.platform === 'win32'

const { dir, place, x, y, m } = workplace()
const [otherX, otherY, no] = [place('otherX.npz'), place('otherY.npz'), place('no')]

beforeAll(async () => {
  const other = problem({ rows: 500, labels: 50, seed: 3 })
  await writeNpz(otherX, other.x)
  await writeNpz(otherY, other.y)
  writeFileSync(place('broken.json'), '{"aquilaTree": 1,')
  writeFileSync(place('empty.txt'), '')
  writeFileSync(place('twice.txt'), Array.from({ length: 40 }, (_, i) => `name ${i % 37}\n`).join(''))
  writeFileSync(place('words.txt'), '3\napple\n')
  writeFileSync(place('large.txt'), '4294967296\n')
})

const train = ['train', '--x', x, '--y', y, '--out', no]
const predict = ['predict', '--model', m, '--x', x]
const group = ['group', '--x', x, '--rule', 'random:2', '--out', no]
const grouped = ['--groups', y, '--bags', y]
const assign = ['assign', '--x', x, ...grouped, '--out', no]
const weighed = ['evaluate', '--pred', y, '--y', y, '--train-y', y]
const refine = ['refine', '--x', x, ...grouped, '--out', no]

const bad: [string, string[], RegExp][] = [
  [
    'an unknown verb',
    ['trian'],
    /^aquila: unknown command 'trian' \(did you mean train\?\): expected one of train, .*, bench, help$/i,
  ],
  [
    'help of an unknown verb',
    ['help', 'foo'],
    /^aquila: unknown command 'foo': expected one of train, predict, /,
  ],
  [
    'an unknown verb asked for help',
    ['foo', '--help'],
    /^aquila: unknown command 'foo': expected one of train, /,
  ],
  [
    'rows twice',
    ['train', '--x', x, '--x', x, '--y', y, '--out', no],
    /Expected --x once but received it twice/,
  ],
  ['an option twice, once with =', [...train, '--seed', '1', '--seed=1'], /Expected --seed once/],
  ['k of predictions twice', [...predict, '--k', '3', '--k', '3'], /Expected --k once/],
  ['an unknown option', [...train, '--xx', '1'], /unknown option '--xx'/],
  ['a missing option', ['train', '--x', x, '--y', y], /--out/],
  ['no rows', ['train', '--y', y, '--out', no], /--x, --xmc or --dense/],
  ['no labels', ['train', '--x', x, '--out', no], /--y/],
  ['a missing file', ['train', '--x', place('none.npz'), '--y', y, '--out', no], /none\.npz/],
  ['a foreign file', ['train', '--x', cliPath, '--y', y, '--out', no], /main\.js/],
  ['an unknown parameter', [...train, '--set', 'tree.maxLef=3'], /did you mean tree\.maxLeaf/],
  ['a wrong value', [...train, '--set', 'tree.maxLeaf=zero'], /an integer from 1 .* received "zero"/],
  ['a parameter named as what every object has', [...train, '--set', '__proto__=1'], /__proto__/],
  [
    'a wrong value before files are read',
    ['train', '--x', place('none.npz'), '--y', y, '--out', no, '--set', 'tree.maxLeaf=-3'],
    /for tree\.maxLeaf but received -3/,
  ],
  [
    'a wrong value for groups before files are read',
    ['train', '--x', place('none.npz'), ...grouped, '--out', no, '--set', 'group.folds=1'],
    /for group\.folds but received 1/,
  ],
  [
    'embeddings of no known kind',
    ['embed', '--x', x, ...grouped, '--out', place('E.txt')],
    /Expected a name in \.npz or \.npy for --out but received \S*E\.txt/,
  ],
  ['a wrong pair', [...train, '--set', 'tree'], /key=value/],
  ['a wrong number', [...train, '--threads', 'two'], /integer/],
  ['wrong bytes', [...train, '--memory-limit', '2X'], /bytes/],
  [
    'too little memory',
    [...train, '--memory-limit', '20k'],
    /forecast to need [\d.]+ kB, more than the limit of 20 KiB \(20\.4 kB\)/,
  ],
  [
    'too little memory for groups',
    [...group.map((word) => word.replace('random:2', 'kmeans:2')), '--memory-limit', '1k'],
    /clustering is forecast/,
  ],
  ['a wrong shape', ['train', '--x', x, '--y', otherY, '--out', no], /600/],
  ['no name to write to', ['train', '--x', x, '--y', y, '--out', ''], /a file name/],
  ['a name of a folder', ['predict', '--model', m, '--x', x, '--out', `${no}/`], /is a folder/],
  ['names that are not there', [...train, '--labels', place('none.txt')], /^aquila: \S+none\.txt: ENOENT/],
  ['a folder of names', [...train, '--feature-names', dir], /^aquila: \S+: is no regular file$/],
  ['no label names in their file', [...train, '--labels', place('empty.txt')], /0 label names for 40 labels/],
  [
    'a label name that stands twice',
    [...train, '--labels', place('twice.txt')],
    /twice\.txt:38: the label name "name 0" already stands in line 1: give each label/,
  ],
  [
    'no feature names in their file',
    [...train, '--feature-names', place('empty.txt')],
    /0 feature names for 140 features/,
  ],
  ['a broken tree', [...train, '--tree', place('broken.json')], /broken\.json: the tree is no readable JSON/],
  ['a folder to write to', ['train', '--x', x, '--y', y, '--out', dir], /./],
  ['no model', ['predict', '--model', x, '--x', x], /X\.npz/],
  ['a wrong matrix', ['predict', '--model', m, '--x', otherX], /170 columns but the model 140/],
  [
    'a parameter twice',
    [...train, '--set', 'tree.maxLeaf=3', '--set', ' tree.maxLeaf=4'],
    /Expected tree\.maxLeaf once/,
  ],
  ['k twice', [...predict, '--k', '5', '--set', 'k=3'], /either --k or --set k but received both/],
  ['the beam twice', [...predict, '--beam', '10', '--set', 'beam=3'], /either --beam or --set beam but/],
  [
    'k of queries twice',
    ['bench', '--model', m, '--x', x, '--k', '10', '--set', 'k=10'],
    /either --k or --set k but received both/,
  ],
  [
    'a parameter of search before rows are read',
    ['predict', '--model', m, '--x', place('none.npz'), '--set', 'scores=best'],
    /for scores but received "best"/,
  ],
  [
    'a beam of queries before rows are read',
    ['bench', '--model', m, '--x', place('none.npz'), '--beam', '70000'],
    /for beam but received 70000/,
  ],
  ['a label beyond all', ['inspect', m, '--label', '40'], /label 40 is not below the number of labels, 40/],
  ['a label beyond 32 bits', ['inspect', m, '--label', '4294967296'], /label 4294967296 is not below/],
  [
    'names of features of no use',
    ['inspect', m, '--feature-names', place('empty.txt')],
    /Expected --label or --several beside --feature-names/,
  ],
  ['a number of features of no use', ['inspect', m, '--top', '10'], /--label or --several beside --top/],
  ['k of 0', [...predict, '--k', '0'], /integer/],
  ['predictions of another shape', ['evaluate', '--pred', x, '--y', y], /./],
  ['a wrong list', ['evaluate', '--pred', y, '--y', y, '--k', '1,a'], /integer/],
  [
    'a data set of no use, before files are read',
    ['evaluate', '--pred', place('none.npz'), '--y', y, '--data-set', 'Wiki10-31K'],
    /Expected --train-y beside --data-set/,
  ],
  ['constants of no use', ['evaluate', '--pred', y, '--y', y, '--set', 'propensity.a=1'], /--train-y/],
  [
    'constants twice',
    [...weighed, '--data-set', 'Amazon-670K', '--set', 'propensity.b=1'],
    /either --data-set or --set propensity\.b but received both/,
  ],
  ['a wrong constant', [...weighed, '--set', 'propensity.a=-1'], /for propensity\.a but received -1/],
  ['a missing model', ['inspect', place('none')], /none/],
  [
    'a rule of no size',
    ['group', '--x', x, '--rule', 'random', '--out', no],
    /random:SIZE, kmeans:SIZE or kmeans-depth:DEPTH/,
  ],
  ['a rule of size 0', ['group', '--x', x, '--rule', 'kmeans:0', '--out', no], /received kmeans:0/],
  ['an unknown rule', ['group', '--x', x, '--rule', 'alike:2', '--out', no], /received alike:2/],
  [
    'a depth beyond all',
    ['group', '--x', x, '--rule', 'kmeans-depth:31', '--out', no],
    /30 at most, for --rule/,
  ],
  [
    'a size beyond 32 bits',
    ['group', '--x', x, '--rule', 'random:4294967296', '--out', no],
    /received random:4294967296/,
  ],
  ['a way to merge without bags', [...group, '--merge', 'set'], /Expected --bags beside --merge/],
  ['groups without a rule', ['group', '--x', x, '--out', no], /--rule/],
  ['groups of no rows', ['group', '--rule', 'random:2', '--out', no], /--x, --xmc or --dense/],
  ['labels without a place for bags', [...group, '--y', y], /--y and --bags together/],
  ['bags without labels', [...group, '--bags', no], /--y and --bags together/],
  ['noise of no use', [...group, '--noise', '0.5'], /Expected --rule kmeans:SIZE beside --noise/],
  ['too much noise', [...group, '--noise', '2'], /Expected a number from 0 to 1/],
  ['labels of other rows', [...group, '--y', otherY, '--bags', place('no2')], /600 samples but y has/],
  ['an unknown merge', [...group, '--merge', 'foo'], /Allowed choices are list, set/],
  ['groups and bags in one file', [...group, '--y', y, '--bags', no], /different files for --out and --bags/],
  [
    'groups for a missing folder',
    ['group', '--x', x, '--rule', 'random:2', '--out', join(no, 'G.npz')],
    /its folder does not exist/,
  ],
  [
    'bags for a missing folder',
    [...group, '--y', y, '--bags', join(place('none'), 'B')],
    /its folder does not exist/,
  ],
  [
    'a tree and its parameters',
    [...train, '--tree', 't.json', '--set', 'tree.arity=2'],
    /--tree or --set tree\.arity but/,
  ],
  [
    'a tree and vectors',
    [...train, '--tree', 't.json', '--label-vectors', x],
    /--tree or --label-vectors but/,
  ],
  [
    'a tree of two texts',
    [...train, '--tree', x, 't.json'],
    /one JSON file or a chain of \.npz files for --tree/,
  ],
  [
    'vectors of two kinds',
    [...train, '--label-vectors', x, '--set', 'tree.vectors=pii'],
    /--label-vectors or --set tree\.vectors but/,
  ],
  [
    'relevances of no use',
    [...train, '--relevance', y],
    /solver\.relevance=induce or leaves beside --relevance/,
  ],
  [
    'negatives of groups',
    ['train', '--x', x, ...grouped, '--negatives', y, '--out', no],
    /labels of rows beside --negatives/,
  ],
  ['metadata that is none', [...train, '--metadata', place('broken.json')], /broken\.json: .*JSON/],
  ['metadata that is not there', [...train, '--metadata', place('none.json')], /none\.json: ENOENT/],
  [
    'allowed and chosen labels',
    [...predict, '--allowed', 'a.txt', '--chosen', y],
    /--chosen or --allowed but/,
  ],
  ['a k of chosen labels', [...predict, '--chosen', y, '--k', '10'], /--chosen or --k but/],
  ['a beam of chosen labels', [...predict, '--chosen', y, '--set', 'beam=3'], /--chosen or --set beam but/],
  ['chosen labels of other rows', [...predict, '--chosen', otherY], /500/],
  [
    'allowed labels that are no numbers',
    [...predict, '--allowed', place('words.txt')],
    /words\.txt:2: .* received "apple"/,
  ],
  [
    'allowed labels beyond all, before rows are read',
    ['predict', '--model', m, '--x', place('none.npz'), '--allowed', place('large.txt')],
    /large\.txt:1: Expected a label below 40 but received "4294967296"/,
  ],
  ['groups without bags', ['train', '--x', x, '--groups', y, '--out', no], /--groups and --bags together/],
  ['labels of rows and of groups', [...train, ...grouped], /of rows or of groups, not both/],
  ['parameters of groups where there are none', [...train, '--set', 'group.rounds=1'], /group.rounds/],
  [
    'a method that is not there',
    ['train', '--x', x, ...grouped, '--out', no, '--set', 'group.method=best'],
    /for group\.method/,
  ],
  ['a fold alone', [...refine, '--folds', '1'], /at least 2/],
  ['a threshold above 1', [...refine, '--threshold', '2'], /for threshold/],
  ['no groups', ['assign', '--x', x, '--bags', y, '--out', no], /--groups/],
  ['no bags', ['assign', '--x', x, '--groups', y, '--out', no], /--bags/],
  ['samples that are not there', ['assign', ...grouped, '--out', no], /--x/],
  [
    'groups of other samples',
    ['assign', '--x', otherX, ...grouped, '--out', no],
    /x has 500 rows but the groups 600 samples/,
  ],
  ['bags of other groups', assign, /40 groups but bags has 600 rows/],
  ['fewer than no iterations', [...assign, '--iterations', '-1'], /an integer of at least 0/],
  ['a step that is no number', [...assign, '--step', 'abc'], /'abc' is invalid\. Expected a number\./],
  [
    'a step of embeddings that is no number',
    ['embed', '--x', x, ...grouped, '--out', no, '--step', ''],
    /'--step <n>' argument '' is invalid\. Expected a number\./,
  ],
  [
    'a threshold that is no number',
    [...refine, '--threshold', 'abc'],
    /'abc' is invalid\. Expected a number\./,
  ],
  ['a step of nothing', [...assign, '--step', '0'], /for step/],
  [
    'similarities for a missing folder',
    ['assign', '--x', x, ...grouped, '--out', join(no, 'S.npz')],
    /its folder does not exist/,
  ],
]

it.each(bad)('%s is one clear line', async (_, args, message) => {
  const { code, stdout, stderr } = await cli(...args)
  expect(code).toBe(1)
  expect(stdout).toBe('')
  const said = stderr.split('\n').filter((line) => !/^\d+ rows, /.test(line))
  expect(said.length).toBe(2)
  expect(said[0]).toMatch(/^aquila: /)
  expect(said[0]).toMatch(message)
  expect(existsSync(no)).toBe(false)
})

it('is one JSON object on standard output too, for those who ask for JSON', async () => {
  const cases: [string[], string, RegExp][] = [
    [[...train, '--set', 'tree.maxLeaf=zero'], 'INVALID_ARGUMENT', /an integer from 1/],
    [[...train, '--set', 'tree.maxLef=3'], 'UNKNOWN_OPTION', /did you mean/],
    [[...train, '--xx', '1'], 'UNKNOWN_OPTION', /--xx/],
    [['train', '--x', x], 'INVALID_ARGUMENT', /--out/],
    [['trian'], 'INVALID_ARGUMENT', /unknown command 'trian' .*expected one of/i],
    [[...predict.with(4, place('none.npz'))], 'IO', /none\.npz/],
    [['inspect', x], 'BAD_MODEL', /X\.npz/],
    [[...train, '--memory-limit', '1k'], 'MEMORY_LIMIT', /forecast/],
    [[...train, '--metadata', place('broken.json')], 'PARSE', /broken\.json/],
  ]
  for (const [args, code, message] of cases) {
    const ended = await cli(...args, '--json')
    const { error, ...rest } = JSON.parse(ended.stdout)
    expect([ended.code, rest, Object.keys(error), error.code]).toEqual([1, {}, ['code', 'message'], code])
    expect(error.message).toMatch(message)
    expect(ended.stderr).toBe(`aquila: ${error.message}\n`)
  }
})

// What they read is not there: found out before it is looked for.
it.each([
  ['assign', '--embeddings', 'E.npy', '.npz'],
  ['assign', '--out', 'S.csv', '.npz'],
  ['refine', '--out', 'S.npz.bz2', '.npz'],
  ['embed', '--out', 'E.json', '.npz or .npy'],
  ['group', '--out', 'G.csv', '.npz'],
  ['group', '--bags', 'B.npy', '.npz'],
  ['predict', '--out', 'scores.csv', '.npz'],
  ['inspect', '--tree', 'tree.npz', '.json'],
])('%s takes no %s %s', async (verb, option, name, endings) => {
  const none = place('none.npz')
  const needed: Record<string, string[]> = {
    predict: ['--model', none, '--x', none],
    group: ['--x', none, '--rule', 'random:2', '--y', none],
    inspect: [none],
  }
  const given = needed[verb] ?? ['--x', none, '--groups', none, '--bags', none]
  const others = ['--out', '--bags'].filter((o) => o !== option && (verb === 'group' || o === '--out'))
  const rest = verb === 'inspect' || verb === 'predict' ? [] : others.flatMap((o, i) => [o, `${no}${i}`])
  const { code, stderr } = await cli(verb, ...given, ...rest, option, place(name))
  expect([code, stderr]).toEqual([
    1,
    `aquila: Expected a name in ${endings} for ${option} but received ${place(name)}\n`,
  ])
})

it('results in arrays may be packed, or have no ending', async () => {
  for (const name of ['P.npz.gz', 'P.NPZ', 'P']) {
    expect((await cli(...predict, '--out', place(name))).code).toBe(0)
    expect((await readNpz(place(name))).rows).toBe(600)
  }
})

it('results do not take the place of what is read', async () => {
  const [input, tree, names] = [place('input.npz'), place('input.json'), place('input.txt')]
  for (const path of [input, tree, names]) writeFileSync(path, 'what is read')
  if (!windows) symlinkSync('input.npz', place('alias.npz'))
  const alias = windows ? input : place('alias.npz')
  const samples = ['--groups', input, '--bags', y]
  for (const [read, written, args] of [
    ['--model', '--out', ['predict', '--model', input, '--x', x, '--out', input]],
    ['--x', '--out', ['predict', '--model', m, '--x', input, '--out', alias]],
    ['--x', '--out', ['predict', '--model', m, '--x', alias, '--out', `${dir}/./input.npz`]],
    ['--x', '--out', ['group', '--x', input, '--rule', 'random:2', '--out', input]],
    ['--y', '--bags', [...group, '--y', input, '--bags', input]],
    ['--groups', '--embeddings', ['assign', '--x', x, ...samples, '--out', no, '--embeddings', input]],
    ['--groups', '--out', ['embed', '--x', x, ...samples, '--out', input]],
    ['--groups', '--out', ['refine', '--x', x, ...samples, '--out', input]],
    ['--tree', '--out', ['train', '--x', x, '--y', y, '--tree', tree, '--out', tree]],
    ['--labels', '--out', ['train', '--x', x, '--y', y, '--labels', names, '--out', names]],
    ['<model>', '--tree', ['inspect', tree, '--tree', tree]],
  ] as const) {
    const { code, stderr } = await cli(...args)
    expect([code, stderr]).toEqual([1, `aquila: Expected different files for ${read} and ${written}\n`])
  }
  for (const path of [input, tree, names]) expect(readFileSync(path, 'utf8')).toBe('what is read')
})

// Not even the first user may: the rights of the folder do not tell.
it.runIf(existsSync('/proc/self'))('a folder that takes no files is told at once', async () => {
  const { code, stderr } = await cli('predict', '--model', m, '--x', place('none.npz'), '--out', '/proc/x')
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^aquila: \/proc\/x: its folder cannot be written to: E/),
  ])
})

it('nothing stays of looking whether a folder may be written to', async () => {
  const folder = place('clean')
  mkdirSync(folder)
  expect((await cli('predict', '--model', m, '--x', no, '--out', join(folder, 'P'))).code).toBe(1)
  expect(readdirSync(folder)).toEqual([])
})

// Found out before the work, not after it: there is no training in these commands.
it.runIf(existsSync('/dev/null'))('no file in the place to write to is told at once', async () => {
  const { code, stderr } = await cli('train', '--x', place('none.npz'), '--y', y, '--out', '/dev/null')
  expect([code, stderr]).toEqual([1, 'aquila: /dev/null: is no regular file\n'])
})

// The matrices are not there: found out before they are looked for.
it.skipIf(windows)('two results in one file are told at once, however it is named', async () => {
  const [far, none] = [place('far'), place('none.npz')]
  const [one, same] = [join(far, 'one.npz'), `${far}/../far/one.npz`]
  mkdirSync(far)
  symlinkSync(join(basename(far), 'one.npz'), place('link.npz'))
  const assigned = ['assign', '--x', none, ...grouped, '--out', one, '--embeddings']
  const put = ['group', '--x', none, '--rule', 'random:2', '--out', one, '--y', y, '--bags']
  for (const [args, option] of [
    [assigned, '--embeddings'],
    [put, '--bags'],
  ] as const)
    for (const other of [one, same, place('link.npz')]) {
      const { code, stderr } = await cli(...args, other)
      expect([code, stderr]).toEqual([1, `aquila: Expected different files for --out and ${option}\n`])
    }
})

it.skipIf(windows)('links that lead nowhere are followed, and circles of them refused', async () => {
  const folder = place('links')
  mkdirSync(folder)
  for (const [from, to] of [
    ['tree.json', 'made.json'],
    ['lost.json', 'none/made.json'],
    ['round.json', 'round.json'],
  ] as const)
    symlinkSync(to, join(folder, from))
  const inspect = (name: string) => cli('inspect', m, '--tree', join(folder, name))
  expect((await inspect('tree.json')).code).toBe(0)
  expect(readlinkSync(join(folder, 'tree.json'))).toBe('made.json')
  expect(existsSync(join(folder, 'made.json'))).toBe(true)
  expect((await inspect('lost.json')).stderr).toMatch(/lost\.json: its folder does not exist\n$/)
  expect((await inspect('round.json')).stderr).toMatch(/round\.json: its symbolic links lead to no end\n$/)
})

// Whoever opens a pipe waits for its writer, and no signal ends that.
it.skipIf(windows)('pipes in the place of texts are refused', async () => {
  execFileSync('mkfifo', [place('pipe')])
  for (const option of ['--tree', '--labels', '--feature-names']) {
    const { child, ended } = start([cliPath, ...train, option, place('pipe')])
    const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
    const { code, stderr } = await ended
    clearTimeout(late)
    expect([code, stderr]).toEqual([1, `aquila: ${place('pipe')}: is no regular file\n`])
  }
})

// Root may write everywhere.
it.runIf((process.getuid?.() ?? 0) > 0)('a folder that may not be written to is told at once', async () => {
  const folder = place('locked')
  mkdirSync(folder, { mode: 0o555 })
  const { code, stderr } = await cli('train', '--x', place('none.npz'), '--y', y, '--out', join(folder, 'm'))
  expect(code).toBe(1)
  expect(stderr).toMatch(/locked\/m: its folder cannot be written to: EACCES: permission denied\n$/)
})

it('shows the stack to those who ask', async () => {
  const { stderr } = await start([cliPath, 'inspect', '/none'], {
    env: { ...process.env, AQUILA_DEBUG: '1' },
  }).ended
  expect(stderr).toMatch(/\n {4}at /)
})
