import type { PhraseGroup } from './lexicon.ts';
import { CERTAIN, CLEAR, MILD } from './terms.ts';

const COOK =
  '(making|cooking|synthesizing|synthesising|manufacturing|producing|brewing|preparing|extracting|creating|make|cook|cook up|synthesize|synthesise|manufacture|produce|brew|prepare|extract|create|mix|distill)';
const OWNER =
  '[a|an|the|my|our|your|his|her|their|some|into] [someone|somebody|anyone|another person|other people|people|peoples|someones|somebodys|wife|husband|girlfriend|boyfriend|ex|ex wife|ex husband|ex girlfriend|ex boyfriend|neighbor|neighbour|neighbors|neighbours|friend|friends|boss|teacher|school|schools|company|coworker|roommate|mom|dad|sister|brother|stranger|person|girl|celebrity|victim|enemy|competitor|rival|government|bank|local|persons|girls|boyfriends|girlfriends|wifes|husbands|teachers] [s|else s|elses]';

const DRUGS: PhraseGroup = {
  categories: ['illicit'],
  score: CERTAIN,
  phrases: [
    `<ask> ${COOK} [me|us] [<a>|my own|homemade|pure|high purity] [pure|homemade|high quality] <drug> !(addiction|test|tests|testing|awareness|policy|treatment|clinic|safe|illegal|users|less|clearance)`,
    `<ask> (cook|make) crack !(propagation|the|open|in|detection|down|pie|pies|seal|shot|filler)`,
    '^ (cook|make|synthesize|manufacture|produce) [me|some] [some] (meth|methamphetamine|crystal meth|crack cocaine|cocaine|heroin|fentanyl|mdma|lsd|ghb)',
    '(meth|methamphetamine|crystal meth|fentanyl|mdma|heroin|lsd|dmt|crack cocaine|ghb|cocaine) (recipe|recipes|synthesis instructions|synthesis route|synthesis guide|cooking instructions|cook instructions|cooking guide|lab setup|extraction guide)',
    '(recipe|recipes|synthesis|synthesis route|instructions|step by step synthesis|ingredients|formula) (for|of) [making|cooking] (meth|methamphetamine|crystal meth|fentanyl|mdma|heroin|lsd|dmt|crack cocaine|crack|krokodil|ghb)',
    '<ask> (set up|start|run|build|hide) [a|my] [~1] (meth lab|drug lab|drug ring|drug cartel|drug operation|drug business|drug smuggling|grow op|pill press|dark web market|darknet market)',
    '<ask> (buy|get|score|purchase|obtain|sell|smuggle|traffic|deal|distribute|move|hide|find|order|import|ship|buying|selling|smuggling|dealing|distributing) [<a>|me|us] [pure|cheap] <drug> !(addiction|test|tests|testing|awareness|policy|treatment|clinic|prescription|users|off|prescribed)',
    '<ask> (buy|sell|smuggle|traffic|deal|push|distribute|hide|get away with selling|get away with dealing|get away with smuggling) [<a>|hard|illegal|illicit|street|large quantities of|more] (drugs|narcotics|weed to (kids|minors|teenagers|students)|crack|opioids|opiates) !(approved|tested|covered|alphabetically|cheaper|legally)',
    '<ask> (get|forge|fake|obtain|buy) [a|an|some] (fake prescription|forged prescription|prescription drugs without|adderall without|xanax without|oxycodone without|oxycontin without|opioids without) [a|prescription]',
    '<ask> (spike|drug|roofie|lace) (someone|somebody|her|his|a girl|someone s|a girl s|my date|my date s|a woman s|my wife|their|a person) [s] [drink|food]',
  ],
};

const CYBER: PhraseGroup = {
  categories: ['illicit'],
  score: CERTAIN,
  phrases: [
    `<ask> (hacking|hacking into|breaking into|stealing|hack|hack into|hack in to|break into|crack|crack into|hijack|brute force|steal|phish|take over|clone|bypass|gain unauthorized access to|get unauthorized access to|gain illegal access to|exploit) ${OWNER} [~1] <account> !(security|safety|thon|myself|legally|ethically)`,
    '<ask> (hack|hack into|dox|doxx|swat) [a|an|the|my] [a] (<somebody>|<kin>|him|her|ex|the pentagon|nasa|the fbi|the cia|the government|the irs) !(life|ethically)',
    '(hack|hack into|hacking into|break into|breaking into) (someone|somebody|someones|somebodys|people|peoples|my (ex|wife|husband|girlfriend|boyfriend|neighbor|neighbour|neighbors|boss|teacher|friend|school|friends|roommate)) [s|else s|elses] [~1] <account>',
    '<ask> (steal|phish|skim|harvest|clone|get|find|guess) [someone|somebody|people|other people|peoples|a person|my neighbor|customers|customer|users|a stranger|an old lady|the] [s|else s] [bank|personal|credit card|login|private] (identity|identities|credit card|credit cards|credit card number|credit card numbers|credit card details|card details|bank details|social security number|social security numbers|ssn|login credentials|bank credentials|bank login) !(security|fraud|insurance|offers|protection|reader|form)',
    '(write|create|make|build|code|develop|program|generate|give|design|deploy|craft|send|show|create and (spread|distribute|deploy)) [me|us] [a|an|some|the|my|custom|your] [code for|code of|code to|script for|python code for|source code for|source code of|python script for|the code for] [a|an] [simple|working|undetectable|new|powerful|basic|fully functional|functional|python|polymorphic|custom|small|advanced|sample|hidden|dangerous|windows|android|linux|piece of|piece of python|example of|c|javascript] [simple|working|undetectable|python|polymorphic|of] <malware> !<notmalware>',
    '(write|code|make|create|build|develop|program) [me] [a|an] [simple|new|python|computer|powerful|undetectable] (virus|trojan|worm) (that|which|to) (deletes|steals|spreads|destroys|infects|encrypts all|crashes|disables antivirus|wipes|corrupts|steal|infect|destroy|wipe|hack|hacks|disables)',
    '<ask> [<make>] (write|code|make|create|build|develop|program) [me] [a|an|some] [python|simple|new|dangerous|destructive|nasty|powerful|undetectable|computer|real] (virus|trojan|worm|backdoor|exploit|stealer|crypter|rat malware|hacking tool|hack tool|fork bomb to crash) (that|to|which|for|in (python|c|javascript|java|powershell)|script|program|code|malware)',
    '(write|create|make|build|send|set up|design|draft|generate|craft|compose|give|show|prepare) [me|us] [a|an|some|the] [script for a|template for a|example of a] [convincing|realistic|fake|good|believable|sophisticated|targeted|professional|effective|sample|mass|perfect|spear] [looking] (phishing|spear phishing|spearphishing|smishing|vishing) (email|emails|e mail|mail|message|messages|scam|page|pages|site|sites|website|websites|campaign|kit|kits|attack|attacks|link|links|scam|scams|text|texts|template|templates|script|scheme|login page) !(detection|detector|awareness|training|filter|filters|classifier|simulation|prevention|quiz|response|protection|defense|test)',
    '<ask> (ddos|ddoses|dos attack|perform a ddos|launch a ddos|launch ddos|do a ddos|carry out a ddos|run a ddos|start a ddos|perform ddos|launch a denial of service|buy a botnet|rent a botnet|build a botnet|create a botnet|make a botnet|set up a botnet) !(protection|mitigation|defense|prevention|detection|guard|resilience|simulation|test)',
    '<ask> (bypass|disable|evade|get past|circumvent) [a|an|the|someone s|windows] (antivirus with|antivirus detection|two factor authentication on someone|icloud lock on a stolen|find my iphone on a stolen|content filter to get porn|edr with|age verification to buy|ankle monitor)',
    '<ask> (do|perform|use|run|execute|carry out) [a|an] (sql injection|xss attack|cross site scripting attack|man in the middle attack|sim swap|sim swapping|credential stuffing|keylogging) [attack] (to (steal|hack|break|get|access|dump|take)|on (someone|somebody|my neighbor|a bank|my school|my ex|a live|a website|a site i don t own))',
    '<ask> (spy on|track|stalk|monitor|read|listen to|tap|intercept) (someone|somebody|someones|my (wife|husband|girlfriend|boyfriend|ex|neighbor|coworker|roommate)) [s|else s] [phone|texts|messages|emails|location|calls|whatsapp|text messages|private messages] (without (them|her|him|his|their|permission|consent|knowing)|secretly)',
    '<ask> (install|put|hide) (a keylogger|spyware|a hidden camera|hidden cameras|a gps tracker|a tracker) (on|in|under) (someone|somebody|my (wife|husband|girlfriend|boyfriend|ex|neighbor|coworker|roommate|boss|neighbors)|a (girls|women|womens|public|bathroom|changing|locker)|the (bathroom|girls|women|womens|changing|locker))',
  ],
};

const CRIME: PhraseGroup = {
  categories: ['illicit'],
  score: CERTAIN,
  phrases: [
    '<ask> clean [my|some|the] (dirty|drug|stolen|illegal) (money|cash|proceeds|crypto|bitcoin)',
    '<ask> launder [~2] (money|cash|proceeds|funds|bitcoin|crypto)',
    '<ask> (make|print|produce|create|buy|get|forge|pass|spend|use|counterfeit|obtain|obtaining|making|printing|producing|forging|production of|producing) [a|an|some|my|good|convincing|realistic] (counterfeit money|counterfeit bills|counterfeit cash|counterfeit currency|counterfeit notes|counterfeit dollars|fake money|fake bills|fake cash|fake id|fake ids|fake i d|fake passport|fake passports|fake driver s license|fake drivers license|fake driving licence|fake vaccine card|fake social security card|fake birth certificate|fake diploma to|fake documents|fake checks|forged documents|forged passport|forged check) !(props|prop|detector|detectors|detection|for|bill)',
    '<ask> (forge|fake) [a|an|someone s|my doctor s|my boss s|a doctor s|my parents] (check|checks|cheque|cheques|signature|signatures|prescription|prescriptions|passport|passports|doctor s note|will|visa|immigration documents|documents|court documents)',
    '<ask> (counterfeit (money|bills|currency|goods|cash)|embezzle|evade taxes|evade [paying] [my] taxes|cheat on my taxes|shoplift|pickpocket|pick pocket|pick pockets|hotwiring|rob a bank|pick someone s pocket|hotwire a car|hot wire a car|hotwire cars|steal a car|steal cars|steal a bike|steal someone s car|carjack|commit fraud|rob|mug someone|mug people|burgle|burglarize) !(prevention|chances|peter|avoidance|robots|software|law)',
    '<ask> get away with [tax|insurance|credit card|committing|welfare] (fraud|theft|stealing|shoplifting|arson|assault|robbery|cheating on my taxes|identity theft|evasion|crimes)',
    '<ask> (commit|committing) [a|an|the] [perfect] [tax|insurance|credit card|identity|bank|wire|welfare|mail|mortgage|securities|check|voter|election|benefits|unemployment|health care|medicare] (fraud|theft|identity theft|crime|robbery|heist|burglary|perjury|arson|extortion|armed robbery)',
    '<ask> (break into|break in to|burgle|sneak into|rob) [a|an|the|my|someone s|somebody s|my neighbor s|my neighbors|my neighbour s|someones|people s|peoples] [locked|parked] (house|houses|home|homes|apartment|car|cars|building|store|shop|bank|safe|school at night|office|museum|jewelry store|gas station|vehicle) !(market|i)',
    '<ask> (scam|defraud|con|swindle|extort|blackmail|catfish|trick) (<somebody>|elderly people|old people|the elderly|seniors|grandmothers|grandma|customers|tourists|investors|my (boss|grandma|grandmother|grandparents|teacher|coworker|ex|neighbor|parents|insurance company|landlord|company)|him|her|a company|an insurance company|a married man) [out of|into sending|into giving|for money|to (give|send|pay)] !(question|questions|myself|game|riddle|shot|photo)',
    '<ask> (run|start|set up|create|operate|pull off|do|make|manage|running|starting|managing) [a|an] [human|drug|sex] (trafficking ring|trafficking operation|smuggling ring)',
    '<ask> (run|start|set up|create|operate|pull off|do|make) [a|an] [successful|online|romance|crypto|cryptocurrency|fake|email|telephone|phone|lottery] (ponzi scheme|pyramid scheme|romance scam|scam|scams|crypto scam|rug pull|pump and dump|nigerian prince scam|investment scam|credit card scam|advance fee scam|tech support scam|insurance scam|fake charity|fraud scheme|illegal gambling ring|prostitution ring|brothel|sweatshop) !(awareness|detection|detector|alert|prevention|warning)',
    '<ask> (traffic|smuggle|sell|buy|enslave|kidnap and sell) (humans|people|women|children|girls|a person|a human|organs|human organs|a kidney|migrants|a child|a baby|a slave|slaves|ivory|exotic animals|endangered animals|stolen goods|rhino horn) [across|into|on the|for|illegally]',
    '<ask> (bribe|threaten) (a|an|the|my) (cop|police officer|judge|politician|official|government official|customs officer|juror|jury|witness|witnesses|teacher|professor|border guard|inspector)',
    '<ask> (tamper with|destroy|hide|plant|get rid of|fabricate) [the|some|false|fake|my|any] evidence (of a crime|from a crime|of murder|from the police|after|at a crime scene|on someone|of my crime)',
    '<ask> (cheat|pass|beat|fool|fake) (a|my|the) (drug test|breathalyzer|urine test|polygraph test|lie detector test|lie detector|polygraph) [for|at|tomorrow]',
    '<ask> (steal|shoplift|rob) [something|stuff|things|clothes|money|items|jewelry|food|electronics|a phone|an iphone|packages|mail|catalytic converters|a wallet|copper] (from (a|the|my|someone|people|walmart|target|stores|work|shops|amazon)|without (getting caught|being caught|paying)|and get away)',
    '<ask> (rig|hack|steal|manipulate|tamper with) (an|the|a) (election|elections|voting machine|voting machines|presidential election|vote|votes)',
    '<ask> (escape|break out of) [from] (prison|jail) (after|using|without|tonight|by)',
    '<ask> (set fire to|burn down|commit arson on) [a|an|the|my|someone s|my neighbor s|my neighbors|our] (house|car|home|building|shop|store|barn|business|restaurant|apartment|forest|garage|warehouse) [for [the] insurance]',
    '<ask> (spread|create|write|make|generate) [some|a] (election disinformation|vaccine disinformation|fake news to (influence|manipulate)|disinformation to)',
  ],
};

/** Crime without weapons: drugs, computers, theft and fraud. */
export const ILLICIT_PHRASES: readonly PhraseGroup[] = [
  DRUGS,
  CYBER,
  CRIME,
  {
    categories: ['illicit'],
    score: MILD,
    disguisedScore: CLEAR,
    phrases: [
      `${COOK} [some|me] [some] (meth|crystal meth|methamphetamine|heroin|fentanyl|cocaine|mdma)`,
      `(hack|hack into|steal) ${OWNER} <account>`,
      '(buy|sell) [some] (drugs|cocaine|heroin|meth)',
    ],
  },
  {
    categories: [],
    score: 0,
    phrases: [
      '(protect|secure|defend|prevent|stop|avoid|detect|against|legal|illegal|wrong|my own) ~6 (phishing|phishing (email|emails|attack|attacks|site|website)|malware|ransomware|keylogger|spyware|ddos)',
      '<ask> [write|create|make|build] ~3 (detect|detects|detecting|block|blocks|blocking|remove|removes|prevent|prevents|stop|stops|analyze|analyzes|classify|classifies|identify|identifies|against|avoid|recognize|recognizes|spot) [a|an|the|any] <malware>',
    ],
  },
];
