import type { PhraseGroup } from './lexicon.ts';
import { CERTAIN, CLEAR, MILD } from './terms.ts';

/** `in` says where: in a kitchen, or in a game. */
const IN_LIFE =
  'in (my|our|your|his|her|real|under|less|secret|1|2|3|5|10|15|20|30|five|ten|thirty|minutes|prison|jail|school|a (kitchen|garage|house|basement|car|school|bottle|jar|can|pot|few|matter|crowd)|the (kitchen|garage|basement|house|microwave|woods|city|easiest|simplest|fastest))';
const BOMB = '[<a>] [<bombkind>] [<bombkind>] [<bombkind>] <explosive>';

/** Weapons, bombs, poisons: how to get them and how to use them. */
export const ILLICIT_VIOLENT_PHRASES: readonly PhraseGroup[] = [
  {
    categories: ['illicit/violent', 'illicit'],
    score: CERTAIN,
    phrases: [
      `<ask> [<make>] [me|us] (<make>|detonate|detonating|plant|planting|set off|setting off|smuggle|hide|get|buy|obtain|acquire|steal) [me|us] ${BOMB} !(<notbomb>|in)`,
      `<ask> (make|build|write|give|create) [me|us] [a|an|the|some] [detailed|simple|step by step] (instructions|guide|recipe|steps|plan|blueprint|tutorial) (for|to|on) [<make>|how to make|how to build] ${BOMB} !(<notbomb>|in)`,
      `<ask> [<make>] [me|us] (<make>|detonate|plant|set off|hide|buy|get) [me|us] ${BOMB} ${IN_LIFE}`,
      `(recipe|recipes|instructions|blueprint|blueprints|plans|ingredients|schematics) for ${BOMB} !(<notbomb>|in)`,
      '(bomb|bombs|explosive|explosives|pipe bomb|ied|molotov cocktail|molotov|napalm|thermite) [making|building|construction|assembly|manufacturing] (instructions|guide|recipe|recipes|tutorial|manual|blueprint|blueprints|instruction|tutorials|schematics|schematic|formula|materials list|ingredients)',
      '(make|build|construct|create|assemble|making|building) [me|us] [a|an|some|my own] [homemade|simple|small|powerful|working|diy] (pipe bomb|pipe bombs|nail bomb|nail bombs|pressure cooker bomb|fertilizer bomb|fertiliser bomb|car bomb|car bombs|letter bomb|molotov|molotovs|molotov cocktail|molotov cocktails|ied|ieds|suicide vest|dirty bomb|pipebomb|pipebombs|napalm bomb|napalm|chlorine bomb|petrol bomb|petrol bombs|improvised explosive device|improvised explosive|improvised explosives)',
      `^ (make|build|construct|create|assemble|give|sell|develop|design) [me|us] [a|an|some] [<bombkind>] [<bombkind>] (bomb|bombs|explosive|explosives|grenade|explosive device|weapon of mass destruction) !(<notbomb>|in)`,
      '<ask> [illegally] [<make>|manufacture|3d print|print|buy|get|obtain|acquire|purchase|find|sell|order|smuggle] [<a>] (ghost gun|ghost guns|untraceable gun|untraceable guns|untraceable firearm|illegal gun|illegal guns|illegal firearm|illegal firearms|illegal weapon|illegal weapons|unregistered gun|unregistered firearm|unlicensed gun|gun silencer|silencer for (a|my) (gun|rifle|pistol)|homemade gun|homemade guns|zip gun|zip guns|3d printed gun|3d printed guns|printed gun|machine gun at home|stolen gun|stolen guns|silencer at home|homemade silencer|black market gun|black market guns) !(laws|law|control|legislation|policy|crime|prop|scene)',
      '<ask> (<make>|3d print|print|machine|mill) [<a>] [working|functional|real|plastic|fully automatic|automatic|semi automatic|homemade|untraceable|undetectable] <weapon> (at home|from scratch|from parts|without a license|without a serial number|with a 3d printer|without getting caught|out of)',
      '<ask> (<make>|buy|get) [<a>] <weapon> to (harm|hurt|kill|shoot|attack|murder|injure|threaten|use against|use on) (<somebody>|him|her|<kin>|others|them)',
      '<ask> illegally (buy|get|purchase|obtain|acquire|sell|order) [<a>] <weapon>',
      '<ask> (3d print|3d printing) [<a>] [real|working] <weapon> !(holder|rack|case|grip|stand|box|model|prop|range|parts|mount|replica|toy|display)',
      '<ask> (make|build|making|building) a (silencer|suppressor) !(for)',
      '(what|which) (poison|poisons|chemical|chemicals|drug|drugs) ~3 (untraceable|undetectable|to kill|for killing|kills someone|kill a person|kills a person|can t be detected|cannot be detected)',
      '<ask> (buy|get|purchase|obtain|acquire|sell|order|smuggle|sneak|steal|traffic|bring) [<a>] <weapon> (illegally|without a (background check|license|licence|permit)|without (background check|license|permit|id)|on the (dark web|black market|darknet|street|streets)|off the street|from the (dark web|black market)|under the table|through (airport security|security|metal detectors|customs)|past (security|airport security|metal detectors|customs)|across the border|to (kill|shoot|murder) ~1|(into|onto|on|to) (a|the|my|an) (school|plane|airport|prison|airplane|flight|courthouse))',
      '<ask> (modify|convert|turn|make|converting|modifying|turning) [<a>] [~2] (<weapon>) [in|into|to|be] [a|be] (fully automatic|full auto|fully auto|machine gun)',
      '<ask> (<make>|synthesizing|synthesising|weaponizing|dispersing|spreading|cultivating|extracting|deploy|synthesize|synthesise|weaponize|weaponise|culture|spread|release|disperse|extract|cultivate|grow|obtain|acquire|buy|get|steal|use|distill|develop|cook) [<a>] [deadly|lethal|pure|weaponized|homemade|weapons grade|weapon grade|untraceable|undetectable] <agent> !(detector|detectors|antidote|antidotes|vaccine|vaccines|policy|treaty|convention|treaties|disposal|safely)',
      '(synthesis|synthesis route|recipe|recipes|synthesis instructions|production) (for|of) [making] (sarin|ricin|vx|novichok|mustard gas|nerve agent|nerve agents|nerve gas|botulinum toxin|tabun)',
      '<ask> <make> [<a>] [deadly|lethal|toxic] (chlorine gas|phosgene|chloramine gas|mustard gas|toxic fumes|deadly gas|carbon monoxide) (at home|with household|from household|from bleach|with bleach|by mixing|to (kill|hurt|poison|harm|attack)|as a weapon|bomb|without)',
      '<ask> (weaponize|weaponise|release|spread|engineer|create) [a|an|the] (virus|pathogen|plague|smallpox|ebola|bird flu|pandemic|pandemic virus|superbug|bacteria|disease) (to (kill|infect|harm|hurt|wipe)|in a (city|crowd|school|subway)|as a weapon|that kills|that (could|would|can|will) (kill|infect|wipe))',
      '<ask> [<make>|create|engineer|start|cause] [a|an|the|another] [deadly|lethal|global|new] (bioweapon|bio weapon|biological weapon|pandemic|engineered virus|weaponized pathogen|deadly virus|deadly pathogen) !(response|plan|plans|preparedness|game|simulation|fund|relief|safety|mask|masks|board)',
      '<ask> (enrich uranium|get uranium|buy uranium|obtain uranium|acquire uranium|obtain weapons grade uranium|get plutonium|enrich plutonium|acquire plutonium|steal nuclear material)',
      '<ask> [<make>] (make|poison|brew|mix|use|slip|put) [a|an|some] (undetectable poison|untraceable poison|lethal poison|deadly poison|poison to kill|poison that kills|cyanide|arsenic|antifreeze|rat poison|thallium) [in|into|to kill|on|at home] !(apple|pill|pills|ivy|control|bait|treatment|test|testing|removal)',
    ],
  },
  {
    categories: ['illicit/violent', 'illicit'],
    score: MILD,
    disguisedScore: CLEAR,
    phrases: [`<make> ${BOMB} !(<notbomb>|in)`, `(detonate|plant) ${BOMB} !(<notbomb>|in)`],
  },
  {
    categories: [],
    score: 0,
    phrases: [
      `(learned|learnt|discovered|knew|figured out|worked out|realized|showed) how to [safely|quickly|successfully] (<make>|detonate) ${BOMB}`,
      'how (did|had|were|was|have|has) ~3 (<make>|detonate|plant|get|acquire) ' + BOMB,
      'the (atomic|nuclear|hydrogen|atom) (bomb|bombs|weapon|weapons)',
      `(photo|bath|seed|glitter|smoke|stink|calorie|fork|zip|logic|cherry|cocoa|chocolate|water|paint|love|mentos|confetti|sprite|pixel|lego|minecraft|toy|paper|fake|prop|cake|fruit|dry ice|sherbet) <explosive>`,
      '(safely|legally|lawfully) (<make>|dispose of|remove|get|obtain|buy) ' + BOMB,
    ],
  },
];
